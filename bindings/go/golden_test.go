// SPDX-License-Identifier: Apache-2.0

package cohort_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"cohort.example/cohort"
)

// Replays the scenarios of tests/golden/group, which record results of MXNet 1.9.1, with the types of this package.
// tests/golden/README.md describes the format.
func TestWhatMXNetComputedIsComputedHere(t *testing.T) {
	folder, replayed := filepath.Join(root, "tests", "golden", "group"), 0
	for _, entry := range ok(os.ReadDir(folder)) {
		if !entry.IsDir() {
			continue
		}
		replayed++
		t.Run(entry.Name(), func(t *testing.T) {
			alone(t)
			scenario := readScenario(filepath.Join(folder, entry.Name()))
			defer scenario.end()
			for i, line := range scenario.run() {
				if i < 5 {
					t.Error(line)
				}
			}
		})
	}
	if replayed < 81 {
		t.Errorf("replayed %d scenarios", replayed)
	}
}

// A value is a step or a part of one, in JSON's form.
type value map[string]any

func (v value) has(key string) bool { return v[key] != nil }

func (v value) text(key string) string {
	found, _ := v[key].(string)
	return found
}

func (v value) number(key string, otherwise float64) float64 {
	if found, is := v[key].(float64); is {
		return found
	}
	return otherwise
}

func (v value) truth(key string, otherwise bool) bool {
	if found, is := v[key].(bool); is {
		return found
	}
	return otherwise
}

func (v value) list(key string) []any {
	found, _ := v[key].([]any)
	return found
}

func (v value) at(key string) value {
	found, _ := v[key].(map[string]any)
	return found
}

func texts(from []any) []string {
	found := []string{}
	for _, one := range from {
		found = append(found, one.(string))
	}
	return found
}

func reals(from []any) []float64 {
	var found []float64
	for _, one := range from {
		found = append(found, one.(float64))
	}
	return found
}

func ints(from any) []int {
	found := []int{}
	for _, one := range from.([]any) {
		found = append(found, int(one.(float64)))
	}
	return found
}

// The error for each class that a scenario names.
var classes = map[string]error{}

func init() {
	for class, words := range map[error]string{
		cohort.ErrInvalidArgument: "too_many_slices empty_data_shapes bad_grad_req head_grad_required no_such_output count_mismatch " +
			"not_binary bad_arguments",
		cohort.ErrName:        "unknown_input unknown_parameter missing_parameter missing_argument missing_target",
		cohort.ErrShape:       "batch_size_mismatch shape_mismatch incomplete_shapes unspecified_shape_changed up_sizing_not_allowed",
		cohort.ErrDtype:       "type_mismatch",
		cohort.ErrUnsupported: "not_supported",
		cohort.ErrState:       "already_bound not_for_training inputs_need_grad_false no_labels",
	} {
		for _, word := range strings.Fields(words) {
			classes[word] = class
		}
	}
}

// The objects of a scenario, by name.
type scenario struct {
	folder    string
	head      value
	files     map[string]cohort.Params
	groups    map[string]*bound
	metrics   map[string]*cohort.Metric
	rules     map[string]rule
	executors map[string]*watched
	managers  map[string]*cohort.Manager
	modules   map[string]*module
	monitors  map[string]*cohort.Monitor
}

type bound struct {
	*cohort.Group
	forTraining bool
}

type rule struct {
	*cohort.Optimizer
	mode cohort.UpdateMode
}

func readScenario(folder string) *scenario {
	made := &scenario{
		folder: folder, files: map[string]cohort.Params{}, groups: map[string]*bound{}, metrics: map[string]*cohort.Metric{},
		rules: map[string]rule{}, executors: map[string]*watched{}, managers: map[string]*cohort.Manager{},
		modules: map[string]*module{}, monitors: map[string]*cohort.Monitor{},
	}
	done(json.Unmarshal(ok(os.ReadFile(filepath.Join(folder, "scenario.json"))), &made.head))
	return made
}

// end closes objects with functions that refer to the scenario: nothing else frees them.
func (s *scenario) end() {
	for _, manager := range s.managers {
		manager.Close()
	}
	for _, executor := range s.executors {
		executor.Close()
	}
}

// run runs all steps; it returns a line for each difference.
func (s *scenario) run() (lines []string) {
	for i, one := range s.head.list("steps") {
		step := value(one.(map[string]any))
		place := fmt.Sprintf("step %d %s", i, step.text("op"))
		expect, wantsError := step["expect"], step.at("expect").at("error")
		found, err := s.step(step)
		switch {
		case err != nil && wantsError != nil:
			if class := classes[wantsError.text("class")]; class == nil || !errorsIs(err, class) {
				lines = append(lines, fmt.Sprintf("%s: expected %s, found %v", place, wantsError.text("class"), err))
			}
		case err != nil:
			return append(lines, fmt.Sprintf("%s: %v", place, err))
		case wantsError != nil:
			lines = append(lines, fmt.Sprintf("%s: expected %s, found success", place, wantsError.text("class")))
		case expect != nil:
			rtol, atol := step.number("rtol", s.head.number("rtol", 0)), step.number("atol", s.head.number("atol", 0))
			lines = append(lines, s.differences(expect, reflect.ValueOf(found), place, rtol, atol)...)
		}
	}
	return lines
}

func (s *scenario) differences(expected any, found reflect.Value, what string, rtol, atol float64) []string {
	for found.IsValid() && (found.Kind() == reflect.Interface) {
		found = found.Elem()
	}
	nothing := !found.IsValid() || found.Kind() == reflect.Pointer && found.IsNil()
	wrong := func() []string { return []string{fmt.Sprintf("%s: expected %v, found %v", what, expected, found)} }
	var lines []string
	switch e := expected.(type) {
	case nil:
		if !nothing {
			return wrong()
		}
		return nil
	case map[string]any:
		if _, isArray := e["array"]; isArray {
			array, is := found.Interface().(*cohort.NDArray)
			if nothing || !is {
				return wrong()
			}
			return s.arrayDifferences(e, array, what, rtol, value(e).number("atol", atol))
		}
		if nothing || found.Kind() != reflect.Map {
			return wrong()
		}
		for key, item := range e {
			entry := found.MapIndex(reflect.ValueOf(key))
			if !entry.IsValid() {
				lines = append(lines, what+"."+key+": is not there")
				continue
			}
			lines = append(lines, s.differences(item, entry, what+"."+key, rtol, atol)...)
		}
		return lines
	case []any:
		if nothing || found.Kind() != reflect.Slice && found.Kind() != reflect.Array || found.Len() != len(e) {
			return wrong()
		}
		for i, item := range e {
			lines = append(lines, s.differences(item, found.Index(i), fmt.Sprintf("%s[%d]", what, i), rtol, atol)...)
		}
		return lines
	}
	if nothing {
		return wrong()
	}
	if wanted, isNumber := numberOf(expected); isNumber {
		if seen, is := numberOf(found.Interface()); is {
			if !close(wanted, seen, rtol, atol) {
				return wrong()
			}
			return nil
		}
	}
	if fmt.Sprint(expected) != fmt.Sprint(found.Interface()) {
		return wrong()
	}
	return nil
}

func numberOf(from any) (float64, bool) {
	switch v := from.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	case string:
		number, err := strconv.ParseFloat(v, 64)
		return number, err == nil
	}
	return 0, false
}

func close(wanted, found, rtol, atol float64) bool {
	return wanted == found || math.IsNaN(wanted) && math.IsNaN(found) || math.Abs(found-wanted) <= atol+rtol*math.Abs(wanted)
}

func (s *scenario) arrayDifferences(reference value, found *cohort.NDArray, what string, rtol, atol float64) []string {
	wanted := ok(s.array(reference))
	kinds := [2]string{}
	all := [2][]float64{}
	for i, array := range []*cohort.NDArray{wanted, found} {
		kinds[i] = fmt.Sprint(ok(array.Dtype()), ok(array.Shape()))
		all[i] = ok(cohort.ReadAll[float64](ok(array.Cast(cohort.DtypeFloat64))))
	}
	if kinds[0] != kinds[1] {
		return []string{fmt.Sprintf("%s: expected %s, found %s", what, kinds[0], kinds[1])}
	}
	wrong := 0
	for i, number := range all[0] {
		if !close(number, all[1][i], rtol, atol) {
			wrong++
		}
	}
	if wrong > 0 {
		return []string{fmt.Sprintf("%s: %d of %d wrong", what, wrong, len(all[0]))}
	}
	return nil
}

// ---- what a scenario names

func (s *scenario) pathOf(name string) string {
	if !strings.HasPrefix(name, "@") {
		return filepath.Join(s.folder, name)
	}
	for above := s.folder; ; above = filepath.Join(above, "..") {
		for _, place := range []string{filepath.Join(above, name[1:]), filepath.Join(above, "examples", name[1:])} {
			if _, err := os.Stat(place); err == nil {
				return place
			}
		}
	}
}

func (s *scenario) array(reference value) (*cohort.NDArray, error) {
	key, name, _ := strings.Cut(reference.text("array"), "/")
	if s.files[key] == nil {
		s.files[key] = ok(cohort.LoadParams(s.pathOf(s.head.at("files").text(key))))
	}
	array := s.files[key][name]
	if array == nil {
		panic("file " + key + " has no array " + name)
	}
	if rows := reference.list("rows"); rows != nil {
		return array.Slice(int(rows[0].(float64)), int(rows[1].(float64)))
	}
	return array, nil
}

func (s *scenario) arrays(references []any) []*cohort.NDArray {
	var found []*cohort.NDArray
	for _, one := range references {
		if one == nil {
			found = append(found, nil)
			continue
		}
		found = append(found, ok(s.array(one.(map[string]any))))
	}
	return found
}

func (s *scenario) lists(references []any) [][]*cohort.NDArray {
	var found [][]*cohort.NDArray
	for _, one := range references {
		found = append(found, s.arrays(one.([]any)))
	}
	return found
}

func (s *scenario) named(references value) cohort.Params {
	found := cohort.Params{}
	for name, one := range references {
		found[name] = ok(s.array(one.(map[string]any)))
	}
	return found
}

func (s *scenario) symbol(step value) *cohort.Symbol { return s.symbolOf(step.text("symbol")) }

func (s *scenario) symbolOf(key string) *cohort.Symbol {
	return ok(cohort.LoadSymbol(s.pathOf(s.head.at("symbols").text(key))))
}

// group is the group of a step, or the main one of a manager.
func (s *scenario) group(step value) *bound {
	switch {
	case step.has("manager"):
		return &bound{ok(s.managers[step.text("manager")].MainGroup()), true}
	case step.has("module"):
		return s.modules[step.text("module")].bound
	}
	return s.groups[step.text("group")]
}

func descs(from []any) []cohort.Desc {
	var found []cohort.Desc
	for _, one := range from {
		reference := value(one.(map[string]any))
		found = append(found, cohort.Desc{
			Name: reference.text("name"), Shape: ints(reference["shape"]), Dtype: dtypeNamed(reference.text("dtype")),
			Layout: reference.text("layout"),
		})
	}
	return found
}

func dtypeNamed(name string) cohort.Dtype {
	for _, dtype := range []cohort.Dtype{
		cohort.DtypeFloat32, cohort.DtypeFloat64, cohort.DtypeFloat16, cohort.DtypeUint8, cohort.DtypeInt32, cohort.DtypeInt8, cohort.DtypeInt64,
	} {
		if dtype.String() == name || name == "" {
			return dtype
		}
	}
	panic("there is no dtype " + name)
}

func contexts(step value) []cohort.Context {
	var found []cohort.Context
	for _, one := range step.list("contexts") {
		found = append(found, ok(cohort.ParseContext(one.(string))))
	}
	return found
}

func requests(step value) ([]cohort.Option, error) {
	switch given := step["grad_req"].(type) {
	case string:
		req, err := cohort.ParseGradReq(given)
		return []cohort.Option{cohort.WithGradReq(req)}, err
	case []any:
		var list []cohort.GradReq
		for _, word := range given {
			list = append(list, ok(cohort.ParseGradReq(word.(string))))
		}
		return []cohort.Option{cohort.WithGradReqList(list...)}, nil
	case map[string]any:
		reqs := map[string]cohort.GradReq{}
		for name, word := range given {
			reqs[name] = ok(cohort.ParseGradReq(word.(string)))
		}
		return []cohort.Option{cohort.WithGradReqs(reqs)}, nil
	}
	return nil, nil
}

// byEntry turns the lists of the devices into the devices' arrays of each entry.
func byEntry(devices [][]cohort.NamedArray) [][]*cohort.NDArray {
	var found [][]*cohort.NDArray
	for i := range devices[0] {
		var entry []*cohort.NDArray
		for _, device := range devices {
			entry = append(entry, device[i].Array)
		}
		found = append(found, entry)
	}
	return found
}
