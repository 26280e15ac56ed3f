// SPDX-License-Identifier: Apache-2.0
// Runs Kafka's command line tools one after the other in one JVM, which starts once.
//
// A call comes on standard input: the class and its arguments, encoded as in a URL, with spaces
// between them, on one line. The answer is three lines on standard output: the exit code, and what
// the tool has written to its stdout and its stderr, in base 64.
//
// A tool ends by Kafka's own Exit, often from within a `try` that would catch anything that is
// thrown there. So each tool has a thread of its own, and one that exits never goes on.

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.Exit;

public class Tools {
    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        BufferedReader calls =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.setOut(System.err); // what logs begin with is no answer
        for (String call = calls.readLine(); call != null; call = calls.readLine()) {
            String[] words = Arrays.stream(call.split(" ", -1))
                .map(word -> URLDecoder.decode(word, StandardCharsets.UTF_8))
                .toArray(String[]::new);
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            answers.println(code);
            answers.println(Base64.getEncoder().encodeToString(out.toByteArray()));
            answers.println(Base64.getEncoder().encodeToString(err.toByteArray()));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static int run(String tool, String[] arguments) throws Exception {
        CompletableFuture<Integer> code = new CompletableFuture<>();
        Exit.setExitProcedure((status, message) -> {
            code.complete(status);
            while (true) {
                LockSupport.park();
            }
        });
        Thread thread = new Thread(() -> {
            try {
                Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
                code.complete(0);
            } catch (InvocationTargetException failed) {
                System.err.print("Exception in thread \"main\" ");
                failed.getCause().printStackTrace();
                code.complete(1);
            } catch (ReflectiveOperationException missing) {
                code.completeExceptionally(missing);
            }
        }, "main");
        thread.setDaemon(true);
        thread.start();
        return code.get();
    }
}
