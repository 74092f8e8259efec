import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.DoubleValue;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import java.nio.file.*;
import java.util.*;

/**
 * `VespaScores.java FOLDER`: evaluates N.expressions on the rows of N.rows, for every N, into N.scores.
 *
 * <p>Each line of N.expressions is a name, a tab and an expression, which may use the names before it; the last one is
 * the score. The first line of N.rows has the names of the rank features.
 */
public class VespaScores {
  public static void main(String[] args) throws Exception {
    try (DirectoryStream<Path> models = Files.newDirectoryStream(Path.of(args[0]), "*.expressions")) {
      for (Path path : models) {
        String base = path.toString().replaceAll("expressions$", "");
        Map<String, RankingExpression> functions = new LinkedHashMap<>();
        for (String line : Files.readAllLines(path)) {
          String[] parts = line.split("\t", 2);
          functions.put(parts[0], new RankingExpression(parts[1]));
        }
        List<String> rows = Files.readAllLines(Path.of(base + "rows")), scores = new ArrayList<>();
        String[] names = rows.get(0).split("\t");
        for (String row : rows.subList(1, rows.size())) {
          String[] cells = row.split("\t", -1);
          MapContext context = new MapContext();
          for (int j = 0; j < names.length; j++) {
            double value = cells[j].isEmpty() ? Double.NaN : Double.parseDouble(cells[j]);
            context.put(names[j], new DoubleValue(value));
          }
          double last = Double.NaN;
          for (Map.Entry<String, RankingExpression> each : functions.entrySet()) {
            last = each.getValue().evaluate(context).asDouble();
            context.put(each.getKey(), new DoubleValue(last));
          }
          scores.add(Double.toString(last));
        }
        Files.write(Path.of(base + "scores"), scores);
      }
    }
  }
}
