import ciir.umass.edu.learning.*;
import java.nio.file.*;
import java.util.*;

/** `RankLibScores.java FOLDER`: scores the rows of N.rows with N.model, for every N, into N.scores. */
public class RankLibScores {
  public static void main(String[] args) throws Exception {
    try (DirectoryStream<Path> models = Files.newDirectoryStream(Path.of(args[0]), "*.model")) {
      for (Path path : models) {
        String name = path.toString().replaceAll("model$", "");
        Ranker ranker = new RankerFactory().loadRankerFromString(Files.readString(path));
        List<String> scores = new ArrayList<>();
        for (String row : Files.readAllLines(Path.of(name + "rows"))) {
          scores.add(Double.toString(ranker.eval(new DenseDataPoint(row))));
        }
        Files.write(Path.of(name + "scores"), scores);
      }
    }
  }
}
