package launch

import "time"

// Patiently has launchers of this process wait for the rank that is the cause of
// another one's end for as long as it takes.
func Patiently() { settleTime = time.Hour }
