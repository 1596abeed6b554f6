package fsm

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
)

// The bounds of policies. Each queue and exchange of a vhost is matched with them when it is declared, and all of them
// when one changes.
const (
	MaxPolicies         = 256  // of a vhost, users' and operators' each
	MaxPatternBytes     = 1024 // of the regular expression
	maxPatternSteps     = 1000 // instructions of a compiled one
	maxDefinitionBytes  = 16 << 10
	maxPriorityOfPolicy = 1 << 31
)

// policyKey is a key of a definition.
type policyKey struct {
	name     string
	operator bool // operators' policies may have it as well
	valid    func(f *field) bool
	called   string // in "… is not a valid …"
}

// policyKeys are all there are.
var policyKeys = []policyKey{
	{"message-ttl", true, numbersIn(0, maxPeriod), "message TTL"},
	{"expires", true, numbersIn(1, maxPeriod), "queue expiry"},
	{"max-length", true, numbersIn(0, unlimited), "maximum length"},
	{"max-length-bytes", true, numbersIn(0, unlimited), "maximum length in bytes"},
	{"max-in-memory-length", true, numbersIn(0, unlimited), "maximum memory in messages"},
	{"max-in-memory-bytes", true, numbersIn(0, unlimited), "maximum memory in bytes"},
	{"delivery-limit", true, numbersIn(-unlimited, unlimited), "delivery limit"},
	{"consumer-timeout", true, numbersIn(0, unlimited), "consumer timeout"},
	{"consumer-disconnected-timeout", true, numbersIn(0, unlimited), "consumer disconnected timeout"},
	{"delayed-retry-min", false, numbersIn(0, unlimited), "delayed retry minimum"},
	{"delayed-retry-max", false, numbersIn(0, unlimited), "delayed retry maximum"},
	{"delayed-retry-multiplier", false, numbersIn(1, maxRetryMultiplier), "delayed retry multiplier"},
	{"delayed-retry-type", false, textsOf("disabled", "all", "failed", "returned"), "delayed retry type"},
	{"overflow", true, textsOf("drop-head", "reject-publish", "reject-publish-dlx"), "overflow value"},
	{"dead-letter-exchange", false, isText, "dead letter exchange name"},
	{"dead-letter-routing-key", false, isText, "dead letter routing key"},
	{"dead-letter-strategy", false, textsOf("at-most-once", "at-least-once"), "dead letter strategy"},
	{"alternate-exchange", false, isText, "alternate exchange name"},
	// These are kept and mean nothing here.
	{"queue-leader-locator", false, isText, "queue leader locator"},
	{"queue-master-locator", false, isText, "queue master locator"},
	{"target-group-size", true, numbersIn(1, unlimited), "target quorum queue group size"},
	{"queue-mode", false, textsOf("default", "lazy"), "queue mode"},
	{"queue-version", false, numbersIn(1, 2), "queue version"},
	{"ha-mode", true, anyValue, "ha-mode"},
	{"ha-params", true, anyValue, "ha-params"},
	{"ha-sync-mode", true, anyValue, "ha-sync-mode"},
	{"ha-sync-batch-size", true, anyValue, "ha-sync-batch-size"},
	{"ha-promote-on-shutdown", true, anyValue, "ha-promote-on-shutdown"},
	{"ha-promote-on-failure", true, anyValue, "ha-promote-on-failure"},
}

func numbersIn(low, high int64) func(*field) bool {
	return func(f *field) bool {
		x, ok := f.integer()
		return ok && x >= low && x <= high
	}
}

func textsOf(texts ...string) func(*field) bool {
	return func(f *field) bool { return f.tag == 'S' && slices.Contains(texts, string(f.value)) }
}

func isText(f *field) bool { return f.tag == 'S' && len(f.value) <= MaxNameBytes }

func anyValue(*field) bool { return true }

// checkDefinition validates the settings of a policy.
func checkDefinition(definition []byte, operator bool) Result {
	fields, ok := parseTable(definition, nil)
	switch {
	case !ok:
		return refuse(PreconditionFailed, "the definition is not a field table")
	case len(definition) > maxDefinitionBytes:
		return refuse(PreconditionFailed, "a definition of %d bytes is longer than %d", len(definition), maxDefinitionBytes)
	case len(fields) == 0:
		return refuse(PreconditionFailed, "Validation failed: no policy provided: the definition is empty")
	}
	for i := range fields {
		f := &fields[i]
		at := slices.IndexFunc(policyKeys, func(k policyKey) bool { return k.name == f.name })
		switch {
		case at < 0:
			return refuse(PreconditionFailed, "Validation failed: '%s' is not a recognised policy setting", f.name)
		case operator && !policyKeys[at].operator:
			return refuse(PreconditionFailed, "Validation failed: '%s' is not a recognised operator policy setting", f.name)
		case !policyKeys[at].valid(f):
			return refuse(PreconditionFailed, "Validation failed: '%s' is not a valid %s", f.text(), policyKeys[at].called)
		}
		if find(fields[:i], f.name) != nil {
			return refuse(PreconditionFailed, "Validation failed: '%s' is there twice", f.name)
		}
	}
	return Result{}
}

// checkPattern says what is wrong with a pattern, "" for nothing. Patterns are bounded, so that matching all names of a
// vhost is.
func checkPattern(pattern string) string {
	if len(pattern) > MaxPatternBytes {
		return fmt.Sprintf("a pattern of %d bytes is longer than %d", len(pattern), MaxPatternBytes)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err == nil {
		var program *syntax.Prog
		if program, err = syntax.Compile(tree.Simplify()); err == nil && len(program.Inst) > maxPatternSteps {
			return fmt.Sprintf("the pattern '%s' makes %d steps of a program, more than %d: it repeats too much", pattern, len(program.Inst), maxPatternSteps)
		}
	}
	if err == nil {
		_, err = regexp.Compile(pattern)
	}
	if err != nil {
		return fmt.Sprintf("Validation failed: '%s' is not a valid regular expression: %v", pattern, err)
	}
	return ""
}
