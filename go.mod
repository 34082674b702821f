module github.com/argon-go/argon

go 1.26.0

require (
	golang.org/x/sys v0.49.0
	pgregory.net/rapid v1.3.0
)

require github.com/puzpuzpuz/xsync/v3 v3.5.1

require (
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/tools v0.52.0
)
