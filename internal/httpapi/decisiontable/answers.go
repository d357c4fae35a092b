package decisiontable

// answers are those to a question about what numbers of a table stand for. Each number is asked about once.
type answers struct {
	ask   func(number int) answer
	known []answer
}

// answer is one of them.
type answer uint8

const (
	notAsked answer = iota
	no
	yes
	// notConcerned says that the question is about something else.
	notConcerned
)

func answerOf(is bool) answer {
	if is {
		return yes
	}
	return no
}

// answersTo prepares the answers for the numbers below n.
func answersTo(n int, ask func(number int) answer) *answers {
	return &answers{ask, make([]answer, n)}
}

func (a *answers) of(number uint32) answer {
	if a.known[number] == notAsked {
		a.known[number] = a.ask(int(number))
	}
	return a.known[number]
}
