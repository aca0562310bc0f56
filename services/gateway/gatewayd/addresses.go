package gatewayd

import "sync"

// addresses counts the websockets of each client's address. It is safe for concurrent use.
type addresses struct {
	mu   sync.Mutex
	open map[string]int
}

// enter counts one more, unless there are most already; most 0 is no bound. leave, called once, counts it off.
func (a *addresses) enter(address string, most int) (leave func(), ok bool) {
	if most == 0 {
		return func() {}, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[address] >= most {
		return nil, false
	}
	if a.open == nil {
		a.open = map[string]int{}
	}
	a.open[address]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.open[address]--; a.open[address] == 0 {
			delete(a.open, address)
		}
	}, true
}
