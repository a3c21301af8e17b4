// Go's net/http: 200 rows as JSON, made and compressed for every request.
package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
)

type row struct {
	ID    int      `json:"id"`
	Name  string   `json:"name"`
	Price float64  `json:"price"`
	Tags  []string `json:"tags"`
}

var writers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func answer(response http.ResponseWriter, _ *http.Request) {
	rows := make([]row, 0, 200)
	for id := range 200 {
		rows = append(rows, row{id, fmt.Sprintf("item %d", id), float64(id) * 1.25, []string{"new", "sale"}})
	}
	response.Header().Set("Content-Type", "application/json")
	response.Header().Set("Content-Encoding", "gzip")
	writer := writers.Get().(*gzip.Writer)
	defer writers.Put(writer)
	writer.Reset(response)
	if err := json.NewEncoder(writer).Encode(rows); err != nil {
		log.Print(err)
	}
	writer.Close()
}

func main() {
	http.HandleFunc("/", answer)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
