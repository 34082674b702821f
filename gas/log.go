package gas

import (
	"log/slog"
	"os"

	"github.com/argon-go/argon/internal/job/jobenv"
)

// Logger is a logger to h whose records have n's rank, as "rank", and the job's size and name, as "ranks" and "job". The name is that of
// gasrun or of another launcher; there is none in one process.
func Logger(n *Node, h slog.Handler) *slog.Logger {
	l := slog.New(h).With("rank", n.rank, "ranks", n.size)
	if name := jobenv.JobName(os.Getenv); name != "" {
		l = l.With("job", name)
	}
	return l
}
