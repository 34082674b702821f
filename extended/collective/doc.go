// Package collective moves and combines the data of all ranks at once: broadcast,
// reduction, gather, scatter, exchange, prefix reduction (those of UPC 1.3, library
// section 7.3, but for upc_all_permute), reduction with scatter, gather and exchange of
// blocks whose lengths differ, and agreement. It works on bytes, for compilers and runtimes that use package
// am without package gas, whose typed collectives are fronts of it. [AllReduce] and others make a
// [Call], which [Member.Do] does.
//
// # Set-up
//
// A [Member] is made before the job is attached, and bound afterwards:
//
//	c := collective.New(collective.Config{})
//	e, err := am.Attach(ep, am.Config{Runtime: c.Handlers()})
//	...
//	c.Bind(e)
//
// A barrier, or what else makes sure that all ranks have attached, comes before the first
// call.
//
// # Duties of the caller
//
// All ranks make the same calls in the same order, each from one goroutine at a time, and
// not in a handler. They need not make them at the same time. A rank goes on when its own
// part is done, so a collective is no barrier; where the result of a rank needs data of all
// others (AllReduce, AllGather, Exchange, Agree), it has waited for them.
//
// Buffers are any memory, the Go heap included, and belong to the call until it returns, with
// an error too; their contents are undefined then. They do not overlap, except
// where a call says so. Nothing is kept of them.
//
// # Calls that do not wait
//
// [Member.Begin] begins a call and returns a [Handle], which is waited for once. Messages say NB
// behind the name of such a call. It goes on whenever a goroutine of the rank polls or waits
// by package am, for anything, not only for its Handle; a rank that does neither holds the others up. Its
// buffers, the Combine and what that reads belong to it until the Handle says
// that it is done, and Combine is called by any such goroutine, one at a time. Any number may be under way at once, of one endpoint
// or of several, and they are done in any order. All ranks begin the calls of a team in one
// order, those that wait included, for a team's calls are numbered as they are begun (MPI-3.1, 5.12). A call that waits matches none that does not.
// When calls do not match, all that are under way
// of the team end so, also those that would have matched.
//
// # Teams
//
// [Member.Split] makes Members for some of the ranks: teams, which may overlap and be
// split again. Each has calls, rooms and a state of its own; messages carry the number of the
// team, which is free on all ranks of the endpoint that was split. A number is free again
// when its team was closed, which is a call of all its ranks, and the calls of the next team with
// it have numbers so much higher that no late message is taken for one of them. A team whose calls did not
// match keeps its number.
//
// # How it works
//
// Data move along binomial trees (and scans and exchanges along a dissemination
// pattern), so every transfer is between ranks whose distance is a power of two
// modulo the job's size, and a rank has O(log Size) of them in a call. AllGather, Exchange,
// ReduceScatter and an AllReduce in elements send blocks of 2 KiB and more directly to the ranks that
// want them, as ExchangeV does with all: that is Size - 1 transfers of a rank, in which no
// byte goes by way of a third one. A rank sends to eight before it waits for what eight send. Sums of a direct reduction are made in the order of the tree, so that
// they have the same bits. Where several
// neighbourhoods are known, broadcasts have
// two levels: a tree among the first ranks of the neighbourhoods and one in each,
// where distances are counted likewise; so H neighbourhoods take H - 1 messages
// between them, ceil(log2 H) of them one after the other. Reductions keep to the
// one tree, since their result must not depend on where ranks are; it is the same
// where neighbourhoods have equal sizes, powers of two, and the root is rank 0.
//
// Where all ranks share memory, a Barrier and an AllReduce of up to 56 bytes send no data: each rank writes what
// it gives into its slot of the system areas (conduits.Endpoint.System), and reads those of all, or,
// of more than 16 ranks, of their groups. In jobs of up to 16 ranks all calls of one length do so for which
// no rank gives more than that. A rank that is about to sleep says in which call it is to
// ranks that it waits for; and before a rank writes its next slot it waits until all have come
// to the call of the one before, and compares what they were called for.
//
// What does not fit a slot goes by staging, memory of each rank that the conduit has for
// this (conduits.SystemStaging), if the call waits: a rank copies there what others need, and they read it in place, in a round that
// ends with a flag of each rank. No message is sent. Reductions in elements have each
// rank combine a part of the elements of all, and those that want the result copy the parts: two rounds. What is longer than half of the
// staging takes several times as many; a reduction whose data cannot be cut goes so as far as it
// fits. In AllGatherV and ExchangeV of up to 16 ranks a rank's lengths come before the blocks, in the same round. GatherV goes by messages:
// its ranks but the root do not wait for each other, and do not know how many rounds there would be.
//
// The staging of a rank of conduit shm is 1 MiB, and less in jobs of more than 64 ranks, whose
// stagings are 64 MiB together, but for 64 KiB that each has at least; what is touched of it is real memory. A half of it is for calls of
// the job. The other half has places for 8 teams at once, each with slots and a staging of its own; teams that share memory go by these as the
// job does, and later ones by messages until a team that has a place is closed. Above 16 ranks, calls of
// less than 2 KiB for each rank keep to messages.
//
// Up to 16 ranks that do not all share memory, and are not simulated, make an AllReduce, AllGather, Exchange and ReduceScatter of up to 4 KiB by slots and staging, too,
// and two ranks all calls but those of blocks whose lengths differ: each rank has copies of the slots and halves of all ranks, and mails what it has written to each other
// rank, unasked. What an earlier call has left there may be overwritten for the reason above. Such a message says in which call its sender is.
//
// Between ranks that share no memory, and are not simulated, data of 16 KiB and more go by a put: the receiver registers its buffer for the
// sender alone as long as the transfer takes, and what says that it is ready has the address. Scatter and Gather of such blocks have them
// go from, or to, the root directly. A call ends when no conduit reads its buffers any more.
//
// Where the conduit's cards have a barrier and its switches replicate messages
// (conduits.Card), broadcasts to all ranks of the job of three and more use
// them: ranks say by the barrier that they are ready, and the root sends once.
//
// The receiver begins: it tells the sender its call and
// where the data will land, and only then does the sender send; one that has to
// wait for that tells the receiver its own call. So nothing has to be queued, ranks
// may be skewed as they like, and a rank that waits has told its partner which call
// it is in: calls that do not match are found by the partner, and all ranks are
// told.
//
// A call is lists of stages, each of which sends, waits for a message or combines. The goroutine of
// a call that waits takes the stages of a list one after the other. Of one that does not, handlers
// note what has come for it and queue it; the next goroutine that polls or waits takes its
// stages as far as they go. Both take a stage by the same code.
//
// An endpoint keeps the rooms that it needs and allocates where one is larger than
// those before, up to 64 KiB. Larger ones the calls of a process share, as long as the collector leaves them; Gather to, and Scatter from,
// another root than rank 0 need room of their own.
//
// # Failure
//
// Ranks whose calls do not match (another function, root or size) get an error that matches
// [ErrBadArg] and names two such calls and their ranks; a rank that needed nothing of
// the others may get it in a later call, or in Leave. From then on all calls fail so. Another combining
// function goes unnoticed. A call whose arguments are wrong is a call that does not match
// those of other ranks, unless theirs are wrong, too. A second goroutine in a call gets
// [ErrNotReady], and calls before Bind [ErrNotInit].
//
// With Config.Phases a rank that waits in the job's barrier for one that waits for it in a
// call of the job's that waits is a mismatch, too: the ranks in the call get the error, and
// the barrier goes on. Calls begun without waiting and
// calls of teams are not compared with it: such ranks wait for each other for ever.
//
// If a rank of the job fails, calls that need others return a *[PeerError] that names it
// and the call; so they do if a rank leaves the job without which a call cannot end, which
// fails the job. [Member.Blocked] names the rank that is waited for.
package collective
