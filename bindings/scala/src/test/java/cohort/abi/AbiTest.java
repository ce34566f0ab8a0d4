// SPDX-License-Identifier: Apache-2.0
package cohort.abi;

import com.sun.jna.Pointer;
import com.sun.jna.StringArray;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;

/** Tests the declarations from plain Java, without the Scala classes: writes TAP. */
public final class AbiTest {
    private static final List<String> LINES = new ArrayList<>();
    private static boolean failed;

    private AbiTest() {
    }

    private interface Body {
        void run() throws Exception;
    }

    private static void test(String name, Body body) {
        boolean passed = false;
        try {
            body.run();
            Check.that(CohortTypes.cohort_live_handles() == 0, CohortTypes.cohort_live_handles() + " handles are left");
            passed = true;
        } catch (Throwable why) {
            System.out.println("# " + why);
            failed = true;
        }
        LINES.add((passed ? "ok " : "not ok ") + (LINES.size() + 1) + " - " + name);
    }

    public static void main(String[] args) {
        test("the library is of the version that was described", () -> Check.that(
            Constants.VERSION.equals(CohortVersion.cohort_version()), CohortVersion.cohort_version()));
        test("structs are laid out as in C", Sweep::layout);
        test("what needs an address refuses NULL", () -> Check.that(Sweep.nulls() > 100, "few functions"));
        test("what is no handle is refused", () -> Check.that(Sweep.strays() > 100, "few functions"));
        test("text is UTF-8 both ways", AbiTest::text);
        test("a line is fitted over two devices", AbiTest::line);
        LINES.forEach(System.out::println);
        System.out.println("1.." + LINES.size());
        System.exit(failed ? 1 : 0);
    }

    private static void text() {
        long[] symbol = new long[1];
        long[] name = new long[1];
        Check.ok(CohortSymbol.cohort_symbol_variable("Größe \u6f22", Pointer.NULL, Pointer.NULL, 0, symbol));
        Check.ok(CohortSymbol.cohort_symbol_name(symbol[0], name));
        Check.that("Größe \u6f22".equals(new Pointer(name[0]).getString(0, "UTF-8")), "another name");
        CohortSymbol.cohort_symbol_free(symbol[0]);
        long error = CohortSymbol.cohort_symbol_load("/nowhere/ä.json", symbol);
        Check.that(CohortError.cohort_error_message(error).contains("/nowhere/ä.json"), "the message does not name the file");
        Check.refused("cohort_symbol_load", error);
    }

    private static StringArray texts(String... values) {
        return new StringArray(values, "UTF-8");
    }

    private static long array(float[] values, long... shape) {
        long[] out = new long[1];
        Check.ok(CohortNdarray.cohort_ndarray_from_host(FloatBuffer.wrap(values), 4L * values.length, shape, shape.length,
            Constants.Dtype.FLOAT32, null, out));
        return out[0];
    }

    private static long descs(String name, long... shape) {
        long[] out = new long[1];
        Check.ok(CohortDescs.cohort_descs_create(out));
        Check.ok(CohortDescs.cohort_descs_add(out[0], name, shape, shape.length, Constants.Dtype.FLOAT32, "NC"));
        return out[0];
    }

    private static float value(long group, int index) {
        long[] out = new long[1];
        float[] read = new float[1];
        Check.ok(CohortGroup.cohort_group_array(group, Constants.GroupList.PARAMS, index, 0, out));
        Check.ok(CohortNdarray.cohort_ndarray_read(out[0], FloatBuffer.wrap(read), 4));
        CohortNdarray.cohort_ndarray_free(out[0]);
        return read[0];
    }

    private static void line() {
        long[] out = new long[1];
        Check.ok(CohortSymbol.cohort_symbol_create("FullyConnected", "fc", texts("num_hidden"), texts("1"), 1, null, Pointer.NULL, 0, out));
        long fc = out[0];
        Check.ok(CohortSymbol.cohort_symbol_create("LinearRegressionOutput", "fit", Pointer.NULL, Pointer.NULL, 0, new long[]{fc}, Pointer.NULL, 1, out));
        long net = out[0];
        Structs.Context first = new Structs.Context();
        Structs.Context[] contexts = (Structs.Context[]) first.toArray(2);
        for (int i = 0; i < 2; ++i) {
            contexts[i].device_type = Constants.DeviceType.CPU;
            contexts[i].device_id = i;
        }
        long data = descs("fc_data", 8, 1);
        long label = descs("fit_label", 8, 1);
        Check.ok(CohortGroup.cohort_group_create(net, first, 2, data, label, texts("fc_weight", "fc_bias"), 2, 1, null, out));
        long group = out[0];
        Check.ok(CohortOptimizer.cohort_optimizer_create("sgd", texts("learning_rate"), texts("0.01"), 1, out));
        long sgd = out[0];
        long xs = array(new float[]{-4, -3, -2, -1, 1, 2, 3, 4}, 8, 1);
        long ys = array(new float[]{-9, -7, -5, -3, 1, 3, 5, 7}, 8, 1);
        for (int i = 0; i < 200; ++i) {
            Check.ok(CohortGroup.cohort_group_forward(group, new long[]{xs}, 1, new long[]{ys}, 1, 1));
            Check.ok(CohortGroup.cohort_group_backward(group, null, 0));
            Check.ok(CohortGroup.cohort_group_update(group, sgd, Constants.UpdateMode.ON_STORE));
        }
        Check.that(Math.abs(value(group, 0) - 2) < 0.01 && Math.abs(value(group, 1) + 1) < 0.01, "y = " + value(group, 0) + " x + " + value(group, 1));
        CohortNdarray.cohort_ndarray_free(xs);
        CohortNdarray.cohort_ndarray_free(ys);
        CohortOptimizer.cohort_optimizer_free(sgd);
        CohortGroup.cohort_group_free(group);
        CohortDescs.cohort_descs_free(data);
        CohortDescs.cohort_descs_free(label);
        CohortSymbol.cohort_symbol_free(fc);
        CohortSymbol.cohort_symbol_free(net);
    }
}
