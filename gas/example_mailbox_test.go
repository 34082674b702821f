package gas_test

import (
	"fmt"

	"github.com/argon-go/argon/gas"
)

// Words are counted at the rank that their first letter decides: each rank pushes what it
// reads, and its own function counts what the others have pushed.
func ExampleMailbox() {
	texts := []string{"ask about bees", "bees ask", "about about"}
	err := gas.Run(gas.Config{Ranks: 3}, func(n *gas.Node) error {
		type word [8]byte
		counts := map[word]int{}
		box, err := gas.NewMailbox(n, "words", func(_ *gas.Node, _ int, words []word) {
			for _, w := range words {
				counts[w]++
			}
		})
		if err != nil {
			return err
		}
		var w word
		k := 0
		for _, c := range texts[n.Rank()] + " " {
			if c != ' ' {
				w[k] = byte(c)
				k++
				continue
			}
			if err := box.Push(int(w[0])%n.Size(), w); err != nil {
				return err
			}
			w, k = word{}, 0
		}
		if err := box.Delete(); err != nil {
			return err
		}
		// All words of all ranks are counted now.
		if n.Rank() == int('a')%n.Size() {
			fmt.Println("ask:", counts[word{'a', 's', 'k'}], "about:", counts[word{'a', 'b', 'o', 'u', 't'}])
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// ask: 2 about: 3
}

// Each rank asks for squares that other ranks work out; the answers come in the order of
// asking.
func ExampleBatch() {
	err := gas.Run(gas.Config{Ranks: 4}, func(n *gas.Node) error {
		squares, err := gas.NewBatch(n, "squares", func(_ *gas.Node, _ int, q int) int { return q * q })
		if err != nil {
			return err
		}
		for i := range 10 {
			if err := squares.Ask(i%n.Size(), i); err != nil {
				return err
			}
		}
		all, err := squares.Answers()
		if err != nil {
			return err
		}
		if n.Rank() == 0 {
			fmt.Println(all)
		}
		return squares.Delete()
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// [0 1 4 9 16 25 36 49 64 81]
}

// A message goes round all ranks twice, each of which sends it on. A barrier would not
// wait for it.
func ExampleNode_Quiesce() {
	err := gas.Run(gas.Config{Ranks: 3}, func(n *gas.Node) error {
		if n.Rank() == 0 {
			if err := onward.Send(n, 1, 5); err != nil {
				return err
			}
		}
		if err := n.Quiesce(); err != nil {
			return err
		}
		all, err := gas.AllReduce(n, *passed.Of(n), gas.Sum[int])
		if n.Rank() == 0 {
			fmt.Println("passed on", all, "times")
		}
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// passed on 6 times
}

var (
	passed gas.PerRank[int]
	onward *gas.Func[int, struct{}]
)

func init() {
	onward = gas.RegisterCall("onward", func(n *gas.Node, left int) struct{} {
		*passed.Of(n)++
		if left > 0 {
			// A called function must not call others itself.
			n.Defer(func(n *gas.Node) { n.Must(onward.Send(n, (n.Rank()+1)%n.Size(), left-1)) })
		}
		return struct{}{}
	})
}
