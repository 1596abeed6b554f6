package fsm

import "fmt"

// messageFiles returns the files in use, made if there are none yet; nil when everything stays in memory.
func (m *Machine) messageFiles() (*messageFiles, error) {
	m.mu.RLock()
	files := m.files
	m.mu.RUnlock()
	if m.root == nil || files != nil {
		return files, nil
	}
	files, err := m.root.make()
	if err != nil {
		return nil, err
	}
	if err := m.root.settle(files, false); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files != nil { // a restore came first
		files.dir.Retire()
	} else {
		m.files = files
	}
	return m.files, nil
}

// Uncollected reports that the last snapshot had no room for all the copies that would win space back: the next one goes
// on with it.
func (m *Machine) Uncollected() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.files != nil && m.files.more.Load()
}

// Close closes the message files. The machine must not be used after it.
func (m *Machine) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files != nil {
		m.files.dir.Close()
	}
	return nil
}

// takeSnapshot takes references to the whole state. It is called by the goroutine that applies; persist may be called by
// any other, release must be. What stalls apply is a reference for every 256 messages and a copy of what is small.
func (m *Machine) takeSnapshot() (*snapshot, error) {
	if _, err := m.messageFiles(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed != nil {
		return nil, fmt.Errorf("no snapshot: %w", m.failed)
	}
	if err := m.files.lost(); err != nil {
		return nil, fmt.Errorf("no snapshot: messages are missing until the state has been repaired from another node: %w", err)
	}
	return m.capture(), nil
}

// capture is takeSnapshot with the lock held.
func (m *Machine) capture() *snapshot {
	files, view := m.files, m.state.view()
	s := &snapshot{files: files, state: view.encode, index: view.Index, term: view.Term, views: make([]queueView, 0, len(m.state.queues))}
	for e := m.state.byNumber.Front(); e != nil; e = e.Next() {
		q := e.Value.(*queue)
		s.views = append(s.views, queueView{q.number, q.messages.view()})
		if q.messages.index != q.held.index { // an empty queue's chunk is gone
			m.state.weigh(q)
		}
	}
	s.keep = m.state.memory.contents <= m.bodyMemory()
	s.hold = func(queue uint64, f func(*messages)) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.files != files {
			return // the state has been replaced
		}
		if q := m.state.queues[queue]; q != nil {
			f(&q.messages)
			m.state.weigh(q)
		}
	}
	s.damaged = files.note
	s.written = func() {
		m.letGo(s.views, s.hold)
		files.pager.pageOut(s.views, s.hold)
	}
	s.release = func() {}
	if files != nil {
		files.dir.Lease()
		s.release = files.dir.Release
	}
	return s
}

// letGo packs what has changed since it was packed, and lets bodies that are in files leave memory until at most
// bodyMemory bytes are left: each queue keeps its share of them, from the head on.
func (m *Machine) letGo(views []queueView, hold func(uint64, func(*messages))) {
	for i := range views {
		for _, c := range views[i].chunks {
			if c.packable() {
				hold(views[i].number, func(q *messages) { q.packAt(c.first()) })
			}
		}
	}
	m.mu.RLock()
	total, budget := m.state.memory.contents, m.bodyMemory()
	m.mu.RUnlock()
	if total <= budget {
		return
	}
	share := float64(budget) / float64(total)
	for i := range views {
		const chunksAtOnce = 16
		var keep uint64
		for end, first := 1<<62, true; end > 0; first = false {
			at := end
			end = 0
			hold(views[i].number, func(q *messages) {
				if first {
					keep = uint64(float64(q.memory) * share)
				}
				end = q.evict(keep, at, chunksAtOnce)
			})
		}
	}
}
