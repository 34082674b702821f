package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(m.Run()) }

// TestGenerated: the program beside the source is what becomes of it.
func TestGenerated(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "heat.caf"))
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join("..", "heat.go"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := translate("heat.caf", string(source)); err != nil || string(got) != string(program) {
		t.Errorf("examples/caf/heat.go is another one than go run ./examples/caf/translate examples/caf/heat.caf makes (%v)", err)
	}
}

// program is one of a statement, with a line for it: 5.
func program(statement string) string {
	return "program p\ninteger, parameter :: m = 4\ninteger :: i, j[*], a(m)\ndouble precision :: x, u(0:m)[*]\n" + statement + "\nend program p\n"
}

// TestStatements: conversions and priorities are Fortran's.
func TestStatements(t *testing.T) {
	for statement, want := range map[string]string{
		"i = 2 * mod(i + 1, 3)":         "i_ = 2 * ((i_ + 1) % (3))",
		"x = i / 2 + 0.5":               "x_ = float64(float32(i_/2) + float32(0.5))",
		"x = -x * (i - 1.5d0)":          "x_ = -x_ * (float64(i_) - float64(1.5e0))",
		"a(i) = int(u(i - 1)[j]) - m":   "a_[i_-(1)] = int32(rt.Get[float64](t, at(t, static_u, i_-1, 0, m_, j_[0]))) - m_",
		"u(0)[i + 1] = i":               "rt.Put[float64](t, at(t, static_u, 0, 0, m_, i_+1), float64(i_))",
		"if (i == 1 .or. x /= 2) j = 3": "if i_ == 1 || x_ != float64(2) {\n//line p.caf:5\n\t\t\tj_[0] = 3",
		"error stop 3":                  "t.GlobalExit(int(3))",
		"print *, 'It''s', i ! is 'it'": "",
		"PRINT *, 'It is', I ! is 'it'": `fmt.Println("It is", i_)`,
	} {
		got, err := translate("p.caf", program(statement))
		if want == "" {
			if err == nil {
				t.Errorf("%s is translated", statement)
			}
		} else if err != nil || !strings.Contains(string(got), "//line p.caf:5\n\t\t"+want+"\n") {
			t.Errorf("%s is not %s: %v\n%s", statement, want, err, got)
		}
	}
}

// TestRefused: what is not translated is refused, where it stands.
func TestRefused(t *testing.T) {
	for statement, says := range map[string]string{
		"k = 1":                       `5: "k" begins no statement that is known, and is no variable`,
		"i = k":                       `5: "k" is not declared, or not known here`,
		"i = ":                        "5: something is missing at the end of the line",
		"i = 1 2":                     `5: "2" is not known behind what stands before it`,
		"i = 1; x = 2":                `5: "; x = 2" begins with nothing that is known`,
		"i = 3000000000":              "5: 3000000000 is larger than integers are",
		"u = 0":                       "5: u is an array: only its elements can be named",
		"m = 5":                       "5: m is a parameter",
		"a(1)[2] = 0":                 `5: "[" where "=" is expected`,
		"x = 'a' + 'b'":               "5: texts can only be printed",
		"do j = 1, 2":                 "5: do j: only an integer that is no coarray can count",
		"do i = 1":                    "5: something is missing at the end of the line",
		"do i = 1, 2":                 "6: the program ends inside do",
		"end if":                      "5: there is no if here",
		"if (i > 1) then\nend do":     "6: there is no do here",
		"if (i > 1) do i = 1, 2":      `5: "do" behind a condition`,
		"else":                        "5: there is no if here",
		"if (i > 1) then\nelse\nelse": "7: there is no if here",
		"critical\nsync all":          "6: sync inside critical",
		"critical\ncritical":          "6: critical inside critical",
		"sync images (*)":             `5: "*" is not declared, or not known here`,
		"sync memory":                 `5: "sync" begins no statement that is known`,
		"i = 1\ninteger :: k":         "6: a declaration behind statements",
		"integer :: i":                `5: "i" is declared already, or is no name`,
		"integer, save :: k":          `5: "," where "::" is expected`,
		"integer :: k(i)":             "5: i_ is no constant",
		"real :: y[2, *]":             `5: "[" where "," is expected`,
		"end program q":               `5: "q" where "p" is expected`,
		"end program p\ni = 1":        `6: "i" behind the end of the program`,
	} {
		if got, err := translate("p.caf", program(statement)); err == nil || !strings.HasPrefix(err.Error(), "p.caf:"+says) {
			t.Errorf("%q: %v, not %s\n%s", statement, err, says, got)
		}
	}
	for _, source := range []string{"", "i = 1", "program p\ni", "program p\n'", "program p\ninteger ::"} {
		if _, err := translate("p.caf", source); err == nil {
			t.Errorf("%q is translated", source)
		}
	}
}
