import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** The JDK's own HTTP server with eight threads. It has no JSON, because the JDK has none. */
public final class Contest {
    static void answer(HttpExchange exchange, String text) throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "text/plain");
        exchange.sendResponseHeaders(200, body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    static long sum(HttpExchange exchange) throws IOException {
        long sum = 0;
        for (String parameter : exchange.getRequestURI().getQuery().split("&")) {
            sum += Long.parseLong(parameter.substring(parameter.indexOf('=') + 1));
        }
        String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
        return body.isEmpty() ? sum : sum + Long.parseLong(body);
    }

    static long size(InputStream body) throws IOException {
        byte[] buffer = new byte[65_536];
        long bytes = 0;
        for (int read = body.read(buffer); read >= 0; read = body.read(buffer)) {
            bytes += read;
        }
        return bytes;
    }

    public static void main(String[] arguments) throws Exception {
        InetSocketAddress address = new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0]));
        HttpServer server = HttpServer.create(address, 4096);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> answer(exchange, ""));
        server.createContext("/user", exchange -> {
            String path = exchange.getRequestURI().getPath();
            answer(exchange, path.length() > 6 ? path.substring(6) : "");
        });
        server.createContext("/pipeline", exchange -> answer(exchange, "ok"));
        server.createContext("/baseline11", exchange -> answer(exchange, Long.toString(sum(exchange))));
        server.createContext("/upload", exchange -> answer(exchange, Long.toString(size(exchange.getRequestBody()))));
        server.start();
    }
}
