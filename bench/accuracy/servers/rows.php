<?php
// 40 rows of a table, from SQLite, as HTML. As is usual in PHP, every request opens the database.
$database = new SQLite3($_SERVER['DATABASE'], SQLITE3_OPEN_READONLY);
$query = $database->prepare('SELECT id, name, price FROM item WHERE shelf = :shelf ORDER BY price DESC LIMIT 40');
$query->bindValue(':shelf', random_int(0, 24), SQLITE3_INTEGER);
$found = $query->execute();
echo "<!doctype html>\n<table>\n";
while ($row = $found->fetchArray(SQLITE3_ASSOC)) {
    printf("<tr><td>%d<td>%s<td>%.2f\n", $row['id'], htmlspecialchars($row['name']), $row['price']);
}
echo "</table>\n";
