module github.com/argon-go/argon/cmd/gasrun/browser

go 1.26.0

require (
	github.com/argon-go/argon v0.0.0
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/argon-go/argon => ../../..
