// 50 MB on Go's heap, in pieces of 100 bytes to 4 KB.
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

func piece(i int) []byte {
	made := make([]byte, 100+i*37%4000)
	for j := range made {
		made[j] = byte(i)
	}
	return made
}

func main() {
	var kept [][]byte
	for bytes, i := 0, 0; bytes < 50_000_000; i++ {
		kept = append(kept, piece(i))
		bytes += len(kept[i])
	}
	fmt.Println("ready")
	for i := 0; len(os.Args) > 1 && os.Args[1] == "--load"; i++ {
		kept[i%len(kept)] = piece(i)
	}
	time.Sleep(1 << 62)
	runtime.KeepAlive(kept)
}
