package segment_test

import (
	"fmt"

	"github.com/argon-go/argon/segment"
)

func ExampleHeap() {
	h, err := segment.NewHeap(segment.AttachBase, 1<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	table, _ := h.AllocCollective(1000, 0) // at the same address on every rank
	buf, _ := h.Alloc(24, 0)               // this rank's own
	fmt.Println(table, buf)
	fmt.Println(h.Free(buf), h.Usage().Used)
	fmt.Println(h.Free(buf))
	_, err = h.Alloc(2<<20, 0)
	fmt.Println(err)
	// Output:
	// 1:0x0:0x0 1:0xff:0xfe0
	// <nil> 1024
	// segment: free of 1:0xff:0xfe0: freed already
	// segment: out of memory: asked for 2097152 bytes aligned to 64; largest free block 1047552, free 1047552 of 1048576 in total (-segment, ARGON_SEGMENT)
}

func ExampleTables() {
	var t segment.Tables
	if err := t.AttachRun(1<<20, 0, 3, segment.RightRead); err != nil {
		fmt.Println(err)
		return
	}
	addr, n, _ := t.Translate(3, segment.AttachBase+0x1008, 8, segment.RightRead)
	fmt.Printf("%#x %d\n", addr, n)
	_, _, err := t.Translate(3, segment.AttachBase, 8, segment.RightWrite)
	fmt.Println(err)
	// Output:
	// 0x1008 8
	// segment: remote access fault: 8 bytes at 1:0x0:0x0 (-w- by vpid 3): page 1:0x0:0x0 allows r-- only
}
