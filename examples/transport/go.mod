module example.com/transport

go 1.26.0

require github.com/argon-go/argon v0.0.0

require (
	github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect
	golang.org/x/sys v0.49.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace github.com/argon-go/argon => ../..
