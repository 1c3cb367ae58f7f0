// Stays up, and runs its controllers while its Pod leads: anew for each term, and never two sets of them.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	url, until, client := os.Getenv("ELECTOR_GET_URL"), time.Now(), http.Client{Timeout: time.Second}
	token, _ := os.ReadFile(os.Getenv("ELECTOR_HTTP_TOKEN_FILE"))
	leads := func() bool { // What is left counts from before the question, and without an answer the deadline stands.
		sent, leader := time.Now(), struct{ Remaining_ms int64 }{}
		if answer, err := client.Get(url + "leader"); err == nil {
			if json.NewDecoder(answer.Body).Decode(&leader) == nil {
				until = sent.Add(time.Duration(leader.Remaining_ms) * time.Millisecond)
			}
			answer.Body.Close()
		}
		return time.Now().Before(until)
	}
	for ; ; time.Sleep(200 * time.Millisecond) {
		if !leads() {
			continue
		}
		for fmt.Println("started"); leads(); time.Sleep(200 * time.Millisecond) {
			fmt.Println("step") // One step of the work.
		}
		fmt.Println("stopped")
		release, _ := http.NewRequest("POST", url+"release", nil)
		release.Header.Set("Authorization", "Bearer "+string(token[:32]))
		if answer, err := client.Do(release); err == nil {
			answer.Body.Close()
		}
	}
}
