// SPDX-License-Identifier: Apache-2.0

// Command predict runs an MXNet checkpoint on an image.
package main

import (
	"fmt"
	"log"

	"cohort.example/cohort"
)

func main() {
	predictor, err := cohort.LoadPredictor("model/digits", 6, cohort.CPU(0), "data")
	if err != nil {
		log.Fatal(err)
	}
	defer predictor.Close()
	image, err := cohort.FromSlice(make([]float32, 64), 1, 1, 8, 8)
	if err != nil {
		log.Fatal(err)
	}
	outputs, err := predictor.Predict(cohort.Params{"data": image})
	if err != nil {
		log.Fatal(err)
	}
	scores := make([]float32, 10)
	if err := cohort.Read(outputs[0], scores); err != nil {
		log.Fatal(err)
	}
	fmt.Println(scores)
}
