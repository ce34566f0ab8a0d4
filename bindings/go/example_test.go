// SPDX-License-Identifier: Apache-2.0

package cohort_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"cohort.example/cohort"
)

// Fits a line through eight points, four on each of two devices.
func Example() {
	x, _ := cohort.Variable("x")
	fc, _ := cohort.Node("FullyConnected", cohort.Attrs{"num_hidden": 1}, cohort.Inputs(x), cohort.Named("fc"))
	net, err := cohort.Node("LinearRegressionOutput", cohort.Inputs(fc), cohort.Named("fit"))
	if err != nil { // symbols that failed are nil, which the last call reports
		log.Fatal(err)
	}
	group, err := cohort.NewGroup(net, []cohort.Context{cohort.CPU(0), cohort.CPU(1)},
		[]cohort.Desc{{Name: "x", Shape: []int{8, 1}}}, []cohort.Desc{{Name: "fit_label", Shape: []int{8, 1}}})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	xs, _ := cohort.FromSlice([]float32{-4, -3, -2, -1, 1, 2, 3, 4}, 8, 1)
	ys, _ := cohort.FromSlice([]float32{-9, -7, -5, -3, 1, 3, 5, 7}, 8, 1)
	sgd, _ := cohort.NewOptimizer("sgd", cohort.Attrs{"learning_rate": 0.01})
	for i := 0; i < 200; i++ {
		if err := group.Forward([]*cohort.NDArray{xs}, []*cohort.NDArray{ys}, true); err != nil {
			log.Fatal(err)
		}
		if err := group.Backward(); err != nil {
			log.Fatal(err)
		}
		if err := group.Update(sgd, cohort.UpdateModeOnStore); err != nil {
			log.Fatal(err)
		}
	}
	params, _, err := group.Params()
	if err != nil {
		log.Fatal(err)
	}
	slope, _ := params["fc_weight"].Float32s()
	offset, _ := params["fc_bias"].Float32s()
	fmt.Printf("y = %.2f x %+.2f\n", slope[0], offset[0])
	// Output: y = 2.00 x -1.00
}

func ExampleError() {
	_, err := cohort.Node("FullyConected")
	var failed *cohort.Error
	if errors.As(err, &failed) {
		fmt.Println(failed.Class, failed.Subject)
	}
	fmt.Println(errors.Is(err, cohort.ErrName))
	// Output:
	// name FullyConected
	// true
}

func ExampleTape() {
	x, _ := cohort.FromSlice([]float32{1, 2})
	gradient, _ := cohort.FromSlice([]float32{0, 0})
	tape, err := cohort.NewTape()
	if err != nil {
		log.Fatal(err)
	}
	defer tape.Close()
	if err := tape.Mark(x, gradient, cohort.GradReqWrite); err != nil {
		log.Fatal(err)
	}
	y, err := tape.Invoke("square", nil, x)
	if err != nil {
		log.Fatal(err)
	}
	if err := tape.Backward(y, cohort.Backwards{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(gradient.Float32s())
	// Output: [2 4] <nil>
}

func ExampleGroup_Fit() {
	data, _ := cohort.Variable("data")
	fc, _ := cohort.Node("FullyConnected", cohort.Attrs{"num_hidden": 2}, cohort.Inputs(data), cohort.Named("fc"))
	net, _ := cohort.Node("SoftmaxOutput", cohort.Inputs(fc), cohort.Named("softmax"))
	group, err := cohort.NewGroup(net, []cohort.Context{cohort.CPU(0)},
		[]cohort.Desc{{Name: "data", Shape: []int{2, 1}}}, []cohort.Desc{{Name: "softmax_label", Shape: []int{2}}})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	x, _ := cohort.FromSlice([]float32{-1, 1}, 2, 1)
	y, _ := cohort.FromSlice([]float32{0, 1})
	left := 1
	source := cohort.SourceFunc(func(context.Context) (*cohort.Batch, error) {
		if left--; left < 0 {
			left = 1
			return nil, io.EOF
		}
		return &cohort.Batch{Data: []*cohort.NDArray{x}, Label: []*cohort.NDArray{y}}, nil
	})
	sgd, _ := cohort.NewOptimizer("sgd", cohort.Attrs{"learning_rate": 0.5})
	accuracy, _ := cohort.NewMetric("accuracy", nil)
	err = group.Fit(context.Background(), source, sgd, cohort.Epochs(20), cohort.Measuring(accuracy))
	values, _ := accuracy.Values()
	fmt.Println(values, err)
	// Output: [{accuracy 1}] <nil>
}
