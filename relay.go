package tract

import "github.com/tract-vcs/tract/objects"

// relay lets objects be looked at while the engine reads the next. Everything else
// waits until what was passed on before has been looked at, so that only one thing is
// done at a time with what they share.
type relay struct {
	take    func(objects.Object) error
	batch   []objects.Object
	batches chan []objects.Object
	done    chan error // one for each batch
	out     int        // batches on the way
}

// How many objects are passed on together, and how many batches may be on the way.
const (
	relayObjects = 256
	relayBatches = 4
)

// relayed is an audit whose objects are looked at in another goroutine. end waits for
// the last, and gives the error of the audit or of that.
func relayed(a objects.Audit) (b objects.Audit, end func(error) error) {
	r := &relay{take: a.Object, batches: make(chan []objects.Object, relayBatches), done: make(chan error, relayBatches+1)}
	go r.run()
	b = a
	b.Begin = func() error { return after(r, a.Begin) }
	b.Object = r.add
	b.Erased = func(t objects.Tombstone) error { return after(r, func() error { return a.Erased(t) }) }
	b.Ref = func(ref objects.Ref) error { return after(r, func() error { return a.Ref(ref) }) }
	b.Entry = func(e objects.LogEntry) error { return after(r, func() error { return a.Entry(e) }) }
	b.Damage = func(d objects.Damage) error { return after(r, func() error { return a.Damage(d) }) }
	return b, func(err error) error {
		waited := r.wait()
		close(r.batches)
		if err != nil {
			return err
		}
		return waited
	}
}

func (r *relay) run() {
	for batch := range r.batches {
		var err error
		for i := 0; i < len(batch) && err == nil; i++ {
			err = r.take(batch[i])
		}
		r.done <- err
	}
}

func (r *relay) add(o objects.Object) error {
	if r.batch = append(r.batch, o); len(r.batch) < relayObjects {
		return nil
	}
	return r.send()
}

// send passes a batch on, and takes the outcome of an earlier one when there are many.
func (r *relay) send() error {
	r.batches <- r.batch
	r.batch, r.out = make([]objects.Object, 0, relayObjects), r.out+1
	if r.out <= relayBatches {
		return nil
	}
	r.out--
	return <-r.done
}

// wait passes on what is left and waits for all of it.
func (r *relay) wait() (err error) {
	if len(r.batch) > 0 {
		err = r.send()
	}
	for ; r.out > 0; r.out-- {
		if e := <-r.done; err == nil {
			err = e
		}
	}
	return err
}

func after(r *relay, f func() error) error {
	if err := r.wait(); err != nil {
		return err
	}
	return f()
}
