import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Executors;

/** The JDK's own HTTP server with eight threads: 500 rows, made, sorted and written as JSON for every request. */
public final class Rows {
    record Row(int id, String name, double price) {}

    static byte[] page() {
        List<Row> rows = new ArrayList<>();
        for (int id = 0; id < 500; id++) {
            rows.add(new Row(id, "item " + (id * 7919) % 1000, id * 1.25));
        }
        rows.sort(Comparator.comparing(Row::name).thenComparing(Row::id));
        StringBuilder page = new StringBuilder("[");
        for (Row row : rows) {
            page.append(page.length() > 1 ? "," : "");
            page.append("{\"id\":").append(row.id()).append(",\"name\":\"").append(row.name());
            page.append("\",\"price\":").append(row.price()).append('}');
        }
        return page.append("]").toString().getBytes(StandardCharsets.UTF_8);
    }

    public static void main(String[] arguments) throws Exception {
        InetSocketAddress address = new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0]));
        HttpServer server = HttpServer.create(address, 4096);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            byte[] body = page();
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
