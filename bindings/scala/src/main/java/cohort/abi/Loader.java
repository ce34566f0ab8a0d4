// SPDX-License-Identifier: Apache-2.0
package cohort.abi;

import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Finds libcohort.so and checks its version. The system property cohort.library or the environment variable COHORT_LIB
 * names the file or the folder it is in; without them it is found on the dynamic linker's path. An UnsatisfiedLinkError
 * says what was tried. As a program it prints which library is found: java -cp cohort-abi.jar:jna.jar cohort.abi.Loader
 */
public final class Loader {
    private static final NativeLibrary LIBRARY = load();

    private Loader() {
    }

    static void register(Class<?> functions) {
        try {
            Native.register(functions, LIBRARY);
        } catch (UnsatisfiedLinkError missing) {
            throw new UnsatisfiedLinkError(LIBRARY.getFile() + " lacks a function: these classes need libcohort "
                + Constants.VERSION + " or later (" + missing.getMessage() + ")");
        }
    }

    /** The file that was loaded. */
    public static File file() {
        return LIBRARY.getFile();
    }

    public static void main(String[] args) {
        System.out.println("libcohort " + CohortVersion.cohort_version() + ", " + file());
    }

    private static NativeLibrary load() {
        if (Native.POINTER_SIZE != 8 || Native.SIZE_T_SIZE != 8) {
            throw new UnsatisfiedLinkError("cohort.abi is for systems of 64 bits");
        }
        // Keeps its symbols local: 1 is RTLD_LAZY, without RTLD_GLOBAL.
        Map<String, Object> options = new HashMap<>();
        options.put(Library.OPTION_STRING_ENCODING, "UTF-8");
        options.put(Library.OPTION_OPEN_FLAGS, 1);
        List<String> tried = new ArrayList<>();
        for (String path : candidates()) {
            NativeLibrary library;
            try {
                library = NativeLibrary.getInstance(path, options);
            } catch (UnsatisfiedLinkError why) {
                tried.add(path + ": " + why.getMessage().split("\n")[0]);
                continue;
            }
            checkVersion(library, path);
            return library;
        }
        throw new UnsatisfiedLinkError("libcohort cannot be loaded; cohort.library or COHORT_LIB may name it or the"
            + " folder it is in. Tried " + String.join("; ", tried));
    }

    private static List<String> candidates() {
        String place = System.getProperty("cohort.library", System.getenv("COHORT_LIB"));
        List<String> found = new ArrayList<>();
        if (place == null || place.isEmpty()) {
            found.add("libcohort.so." + Constants.SOVERSION);
        } else {
            File file = new File(place);
            found.add((file.isDirectory() ? new File(file, "libcohort.so") : file).getAbsolutePath());
        }
        return found;
    }

    private static void checkVersion(NativeLibrary library, String path) {
        String[] parts = Constants.VERSION.split("\\.");
        int needed = Integer.parseInt(parts[0]) * 10000 + Integer.parseInt(parts[1]) * 100 + Integer.parseInt(parts[2]);
        int found = library.getFunction("cohort_version_number").invokeInt(new Object[0]);
        if (found < needed) {
            String version = library.getFunction("cohort_version").invokeString(new Object[0], false);
            throw new UnsatisfiedLinkError(
                path + " is libcohort " + version + "; these classes need " + Constants.VERSION + " or later");
        }
    }
}
