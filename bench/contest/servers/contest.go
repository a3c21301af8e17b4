// Go's net/http without a framework.
package main

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
)

type rating struct {
	Score int `json:"score"`
	Count int `json:"count"`
}

type item struct {
	ID       int      `json:"id"`
	Name     string   `json:"name"`
	Category string   `json:"category"`
	Price    int      `json:"price"`
	Quantity int      `json:"quantity"`
	Active   bool     `json:"active"`
	Tags     []string `json:"tags"`
	Rating   rating   `json:"rating"`
}

type totalled struct {
	item
	Total int `json:"total"`
}

type page struct {
	Items []totalled `json:"items"`
	Count int        `json:"count"`
}

var items []item

func text(response http.ResponseWriter, body string) {
	response.Header().Set("Content-Type", "text/plain")
	io.WriteString(response, body)
}

func baseline(response http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	sum := 0
	for _, number := range []string{query.Get("a"), query.Get("b"), string(body)} {
		value, _ := strconv.Atoi(number)
		sum += value
	}
	text(response, strconv.Itoa(sum))
}

func jsonPage(response http.ResponseWriter, request *http.Request) {
	count, err := strconv.Atoi(request.PathValue("count"))
	factor, factorErr := strconv.Atoi(request.URL.Query().Get("m"))
	if err != nil || factorErr != nil || count < 0 || count > len(items) {
		http.Error(response, "a count and a factor are required", http.StatusBadRequest)
		return
	}
	found := page{make([]totalled, 0, count), count}
	for _, one := range items[:count] {
		found.Items = append(found.Items, totalled{one, one.Price * one.Quantity * factor})
	}
	response.Header().Set("Content-Type", "application/json")
	var body io.Writer = response
	if strings.Contains(request.Header.Get("Accept-Encoding"), "gzip") {
		response.Header().Set("Content-Encoding", "gzip")
		writer := gzip.NewWriter(response)
		defer writer.Close()
		body = writer
	}
	if err := json.NewEncoder(body).Encode(found); err != nil {
		log.Print(err)
	}
}

func upload(response http.ResponseWriter, request *http.Request) {
	bytes, err := io.Copy(io.Discard, request.Body)
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	text(response, strconv.FormatInt(bytes, 10))
}

func main() {
	content, err := os.ReadFile(os.Args[2])
	if err == nil {
		err = json.Unmarshal(content, &items)
	}
	if err != nil {
		log.Fatal(err)
	}
	empty := func(http.ResponseWriter, *http.Request) {}
	http.HandleFunc("GET /{$}", empty)
	http.HandleFunc("POST /user", empty)
	http.HandleFunc("GET /user/{id}", func(response http.ResponseWriter, request *http.Request) {
		text(response, request.PathValue("id"))
	})
	http.HandleFunc("GET /pipeline", func(response http.ResponseWriter, _ *http.Request) { text(response, "ok") })
	http.HandleFunc("/baseline11", baseline)
	http.HandleFunc("GET /json/{count}", jsonPage)
	http.HandleFunc("POST /upload", upload)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
