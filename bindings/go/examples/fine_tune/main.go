// SPDX-License-Identifier: Apache-2.0

// Command fine_tune fine-tunes a checkpoint of MXNet on handwritten digits, over three devices that take 5, 2 and 1 of 8 samples. Once it
// trains without a stop; once it stops half-way, saves parameters and optimizer states, and goes on from the files, as a later process
// would. Both end with the same bits. In this folder: go run . -prefix PREFIX -epoch EPOCH
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"cohort.example/cohort"
)

const batch = 64

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func check(err error) { must(0, err) }

// tune trains from one checkpoint, and the states beside it if there are any, to another; it returns the accuracy.
func tune(digits cohort.Params, from string, epoch int, to string, epochs int) float64 {
	net, args, aux, err := cohort.LoadCheckpoint(from, epoch)
	check(err)
	data := []cohort.Desc{{Name: "data", Shape: []int{batch, 1, 8, 8}}}
	label := []cohort.Desc{{Name: "softmax_label", Shape: []int{batch}}}
	group := must(cohort.NewGroup(net, []cohort.Context{cohort.CPU(0), cohort.CPU(1), cohort.CPU(2)}, data, label,
		cohort.WithWorkload(5, 2, 1), cohort.WithFixedParams("conv1_weight", "conv1_bias"), // the first layer stays as it is
		cohort.StrictNames(), cohort.KeepDeviceAux()))
	defer group.Close()
	check(group.SetParams(args, aux))
	sgd := must(cohort.NewOptimizer("sgd", cohort.Attrs{"learning_rate": 0.05, "momentum": 0.9, "rescale_grad": 1.0 / batch}))
	if states := fmt.Sprintf("%s-%04d.states", from, epoch); exists(states) {
		check(sgd.LoadStates(states))
	}
	check(group.Resume(sgd))

	at, num := 0, must(digits["labels"].Size())
	source := cohort.SourceFunc(func(context.Context) (*cohort.Batch, error) {
		if at += batch; at > num {
			at = 0
			return nil, io.EOF
		}
		rows := func(name string) []*cohort.NDArray { return []*cohort.NDArray{must(digits[name].Slice(at-batch, at))} }
		return &cohort.Batch{Data: rows("images"), Label: rows("labels")}, nil
	})
	metric := must(cohort.NewMetric("accuracy", nil))
	check(group.Fit(context.Background(), source, sgd, cohort.Epochs(epochs), cohort.Measuring(metric)))
	args, aux, err = group.Params()
	check(err)
	check(cohort.SaveCheckpoint(to, epoch+epochs, net, args, aux))
	check(sgd.SaveStates(fmt.Sprintf("%s-%04d.states", to, epoch+epochs)))
	return must(metric.Values())[0].Value
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func fineTune(data, prefix string, epoch, epochs int, out string) (accuracy float64, same bool) {
	digits := must(cohort.LoadParams(data))
	defer digits.Close()
	whole, parts, half := filepath.Join(out, "whole"), filepath.Join(out, "parts"), epochs/2
	accuracy = tune(digits, prefix, epoch, whole, epochs)
	tune(digits, prefix, epoch, parts, half)
	tune(digits, parts, epoch+half, parts, epochs-half)
	read := func(prefix string) []byte {
		return must(os.ReadFile(fmt.Sprintf("%s-%04d.params", prefix, epoch+epochs)))
	}
	return accuracy, bytes.Equal(read(whole), read(parts))
}

func main() {
	data := flag.String("digits", "../../../../examples/data/digits.params", "file of images and labels")
	prefix, epoch := flag.String("prefix", "net", "of the checkpoint"), flag.Int("epoch", 0, "of the checkpoint")
	epochs, out := flag.Int("epochs", 6, "how many to train"), flag.String("out", os.TempDir(), "folder for checkpoints")
	flag.Parse()
	accuracy, same := fineTune(*data, *prefix, *epoch, *epochs, *out)
	fmt.Printf("accuracy %.4f, the same bits after the stop: %v\n", accuracy, same)
}
