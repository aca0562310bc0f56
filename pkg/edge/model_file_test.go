package edge

// file is an object's SQLite file in the model: the states after its commits, the durable one first, and what waits
// to leave until the commits before it are durable. States are never changed in place.
type file[S any] struct {
	states []S
	synced int // how many commits are durable
	out    []leaving
}

type leaving struct {
	after int // commits
	send  func()
}

func newFile[S any](s S) file[S] { return file[S]{states: []S{s}} }

func (f *file[S]) durable() S    { return f.states[0] }
func (f *file[S]) now() S        { return f.states[len(f.states)-1] }
func (f *file[S]) commit(s S)    { f.states = append(f.states, s) }
func (f *file[S]) unsynced() int { return len(f.states) - 1 }

// leave sends once every commit made so far is durable.
func (f *file[S]) leave(send func()) {
	f.out = append(f.out, leaving{f.synced + f.unsynced(), send})
	f.barrier(0)
}

// barrier makes the oldest n unsynced commits durable and releases what waited for them.
func (f *file[S]) barrier(n int) {
	f.synced += n
	f.states = f.states[n:]
	for len(f.out) > 0 && f.out[0].after <= f.synced {
		send := f.out[0].send
		f.out = f.out[1:]
		send()
	}
}

// crash keeps n of the unsynced commits and loses the others, with everything that waited to leave.
func (f *file[S]) crash(n int) {
	f.states = f.states[n : n+1]
	f.synced, f.out = 0, nil
}
