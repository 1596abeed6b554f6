package fsm

import "strings"

// topicNode is a word of binding keys in a trie. A message is matched by following all nodes that its words so far
// lead to at once, each node once a word: the time is at most words × nodes, whatever the keys are.
type topicNode struct {
	parent   *topicNode
	word     string
	children map[string]*topicNode // words other than the two below
	star     *topicNode            // '*'
	hash     *topicNode            // '#'
	bindings bindingList
	seen     uint64 // scratch: the last step that came by
	taken    uint64 // scratch: the last message that took its bindings
}

// words calls yield for each word of a key; the empty key has none.
func words(key string, yield func(string)) {
	if key == "" {
		return
	}
	for {
		at := strings.IndexByte(key, '.')
		if at < 0 {
			yield(key)
			return
		}
		yield(key[:at])
		key = key[at+1:]
	}
}

// place returns the node of a binding key, made if absent.
func (n *topicNode) place(key string) *topicNode {
	words(key, func(word string) {
		next := &n.star
		switch word {
		case "*":
		case "#":
			next = &n.hash
		default:
			child := n.children[word]
			if child == nil {
				if n.children == nil {
					n.children = make(map[string]*topicNode)
				}
				child = &topicNode{parent: n, word: word}
				n.children[word] = child
			}
			n = child
			return
		}
		if *next == nil {
			*next = &topicNode{parent: n, word: word}
		}
		n = *next
	})
	return n
}

// prune frees a node that leads nowhere, and then its ancestors.
func (n *topicNode) prune() {
	for p := n.parent; p != nil && len(n.bindings) == 0 && len(n.children) == 0 && n.star == nil && n.hash == nil; n, p = p, p.parent {
		switch n {
		case p.star:
			p.star = nil
		case p.hash:
			p.hash = nil
		default:
			delete(p.children, n.word)
		}
	}
}

// enter adds a node, and what '#' for no words leads to from it, to the nodes of this step.
func (r *routing) enter(n *topicNode) {
	for ; n != nil && n.seen != r.step; n = n.hash {
		n.seen = r.step
		r.next = append(r.next, n)
	}
}

// match returns the nodes at which bindings that match the key are; they are good until the next call.
func (r *routing) match(root *topicNode, key string) []*topicNode {
	r.step++
	r.next = r.next[:0]
	r.enter(root)
	words(key, func(word string) {
		r.nodes, r.next = r.next, r.nodes[:0]
		r.step++
		for _, n := range r.nodes {
			if n.parent != nil && n == n.parent.hash {
				r.enter(n)
			}
			if n.children != nil {
				r.enter(n.children[word])
			}
			r.enter(n.star)
		}
	})
	return r.next
}
