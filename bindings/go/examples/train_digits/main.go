// SPDX-License-Identifier: Apache-2.0

// Command train_digits trains LeNet on handwritten digits over three devices with unequal shares, saves a checkpoint, and predicts with
// it. In this folder: go run .
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand"

	"cohort.example/cohort"
)

const numTrain, batch, pixels = 1437, 50, 64

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func check(err error) { must(0, err) }

func lenet() *cohort.Symbol {
	net := must(cohort.Variable("data"))
	for i, filters := range []int{20, 50} {
		with := cohort.Attrs{"kernel": []int{3, 3}, "pad": []int{1, 1}, "num_filter": filters}
		net = must(cohort.Node("Convolution", with, cohort.Inputs(net), cohort.Named(fmt.Sprint("conv", i+1))))
		net = must(cohort.Node("tanh", cohort.Inputs(net)))
		net = must(cohort.Node("Pooling", cohort.Attrs{"kernel": []int{2, 2}, "stride": []int{2, 2}, "pool_type": "max"}, cohort.Inputs(net)))
	}
	net = must(cohort.Node("Flatten", cohort.Inputs(net)))
	net = must(cohort.Node("FullyConnected", cohort.Attrs{"num_hidden": 128}, cohort.Inputs(net), cohort.Named("fc1")))
	net = must(cohort.Node("tanh", cohort.Inputs(net)))
	net = must(cohort.Node("FullyConnected", cohort.Attrs{"num_hidden": 10}, cohort.Inputs(net), cohort.Named("fc2")))
	return must(cohort.Node("SoftmaxOutput", cohort.Inputs(net), cohort.Named("softmax")))
}

func train(path, prefix string, epochs int) (accuracy float64) {
	file := must(cohort.LoadParams(path))
	images, labels := must(file["images"].Float32s()), must(file["labels"].Float32s())
	rowsOf := func(rows []int) (data, label *cohort.NDArray) {
		var x, y []float32
		for _, row := range rows {
			x, y = append(x, images[row*pixels:][:pixels]...), append(y, labels[row])
		}
		return must(cohort.FromSlice(x, len(rows), 1, 8, 8)), must(cohort.FromSlice(y))
	}
	random := rand.New(rand.NewSource(1))
	order := random.Perm(len(labels))
	training, test, at := order[:numTrain], order[numTrain:], 0

	net, three := lenet(), []cohort.Context{cohort.CPU(0), cohort.CPU(1), cohort.CPU(2)}
	data := []cohort.Desc{{Name: "data", Shape: []int{batch, 1, 8, 8}}}
	label := []cohort.Desc{{Name: "softmax_label", Shape: []int{batch}}}
	group := must(cohort.NewGroup(net, three, data, label, cohort.WithWorkload(2, 1, 1)))
	defer group.Close()
	check(group.InitParams(must(cohort.NewInitializer("xavier", nil, 1))))
	sgd := must(cohort.NewOptimizer("sgd", cohort.Attrs{"learning_rate": 0.05, "momentum": 0.9, "rescale_grad": 1.0 / batch}))
	metric := must(cohort.NewMetric("accuracy", nil))
	source := cohort.SourceFunc(func(context.Context) (*cohort.Batch, error) {
		if at += batch; at > numTrain {
			at = 0
			random.Shuffle(numTrain, func(i, j int) { training[i], training[j] = training[j], training[i] })
			return nil, io.EOF
		}
		data, label := rowsOf(training[at-batch : at])
		return &cohort.Batch{Data: []*cohort.NDArray{data}, Label: []*cohort.NDArray{label}}, nil
	})
	tell := func(p cohort.Progress) error {
		if p.EpochEnds {
			fmt.Printf("epoch %d: train accuracy %.4f\n", p.Epoch+1, must(p.Metric.Values())[0].Value)
		}
		return nil
	}
	check(group.Fit(context.Background(), source, sgd, cohort.Epochs(epochs), cohort.Measuring(metric), cohort.Watching(tell)))
	args, aux, err := group.Params()
	check(err)
	check(cohort.SaveCheckpoint(prefix, epochs, net, args, aux))
	predictor := must(cohort.LoadPredictor(prefix, epochs, cohort.CPU(0), "data"))
	defer predictor.Close()
	asked, classes := rowsOf(test)
	scores := must(predictor.Predict(cohort.Params{"data": asked}))
	check(metric.Reset())
	check(metric.Update([]*cohort.NDArray{classes}, scores))
	return must(metric.Values())[0].Value
}

func main() {
	path := flag.String("digits", "../../../../examples/data/digits.params", "file of images and labels")
	prefix := flag.String("prefix", "digits", "of the checkpoint")
	flag.Parse()
	fmt.Printf("test accuracy: %.4f\n", train(*path, *prefix, 8))
}
