// Go moves the stacks of its goroutines, and switches between them by jumps. Each call of marker notes who waits for
// whom as Go's own runtime knows it (runtime.Callers); at the end all of that is printed, a line for each call.
// Goroutines have no arguments: Go makes a function for these that runtime.Callers leaves out.
package main

import (
	"os"
	"runtime"
	"strings"
)

var notes []string
var sink, started int
var ready, goOn, done, values = make(chan int), make(chan int), make(chan int), make(chan int)

//go:noinline
func marker() {
	var pcs [256]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var names []string
	for {
		frame, more := frames.Next()
		names = append(names, frame.Function)
		if !more {
			break
		}
	}
	notes = append(notes, strings.Join(names, " "))
}

// Each frame has more than 512 bytes, and the first stack has 2048 or 8192: it grows several times.
//
//go:noinline
func deep(n int) int {
	var room [64]int
	room[n&63] = n
	if n == 0 {
		marker()
		return room[0]
	}
	sum := deep(n-1) + room[n&63]
	if n%16 == 0 {
		marker()
	}
	return sum
}

//go:noinline
func grows() { done <- deep(60) }

//go:noinline
func shrinksItself() {
	deep(100)
	runtime.GC()
	marker()
	done <- deep(3)
}

// Its stack is made smaller while it waits.
//
//go:noinline
func waits() {
	n := started
	started++
	deep(100)
	ready <- n
	inner(n)
	marker()
	done <- n
}

//go:noinline
func inner(n int) {
	if n == 0 {
		sink += <-goOn
		marker()
		return
	}
	inner(n - 1)
}

//go:noinline
func shrinksOthers() {
	const OTHERS = 12
	for n := 0; n < OTHERS; n++ {
		go waits()
	}
	for n := 0; n < OTHERS; n++ {
		<-ready
	}
	runtime.GC()
	runtime.GC()
	for n := 0; n < OTHERS; n++ {
		goOn <- n
	}
	for n := 0; n < OTHERS; n++ {
		<-done
	}
	marker()
}

//go:noinline
func produces() {
	for n := 0; n < 3; n++ {
		marker()
		values <- n
	}
	close(values)
}

//go:noinline
func consumes() {
	for n := range values {
		marker()
		sink += n
	}
	done <- 0
}

//go:noinline
func cleans() { marker() }

//go:noinline
func panics(n int) {
	defer cleans()
	if n == 0 {
		panic("x")
	}
	panics(n - 1)
}

//go:noinline
func recovers(n int) {
	defer func() {
		if recover() != nil {
			marker()
		}
	}()
	panics(n)
}

//go:noinline
func faults(at *int) {
	defer func() {
		if recover() != nil {
			marker()
		}
	}()
	sink += *at
}

//go:noinline
func exits() {
	defer func() { marker(); done <- 0 }()
	deep(2)
	runtime.Goexit()
}

// Longer than Go lets one goroutine execute: a signal makes it yield in the middle of the loop.
//
//go:noinline
func spins() {
	for n := 0; n < 60000000; n++ {
		sink += n & 3
	}
	marker()
}

//go:noinline
func onItsOwnThread() {
	runtime.LockOSThread()
	marker()
	runtime.Gosched()
	deep(20)
	done <- 0
}

type shape interface{ area(n int) int }
type square struct{ side int }
type circle struct{ radius int }

//go:noinline
func (s *square) area(n int) int { marker(); return s.side * n }

//go:noinline
func (c *circle) area(n int) int { marker(); return c.radius * n }

//go:noinline
func areas(shapes []shape) {
	for n, each := range shapes {
		sink += each.area(n)
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	deep(40)
	go grows()
	<-done
	marker()
	go shrinksItself()
	<-done
	marker()
	shrinksOthers()
	go produces()
	go consumes()
	<-done
	for n := 0; n < 3; n++ {
		recovers(n)
		marker()
	}
	faults(nil)
	go exits()
	<-done
	go grows()
	spins()
	<-done
	go onItsOwnThread()
	<-done
	areas([]shape{&square{2}, &circle{3}})
	func(n int) { marker(); sink += n }(3)
	os.Stdout.WriteString(strings.Join(notes, "\n") + "\n")
}
