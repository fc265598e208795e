/**
 * Rows out of one list for each column: `lists("tx_id uuid, nonce bigint")` takes them from $1 and $2. A list that is null
 * is filled up with nulls.
 *
 * Not `FROM unnest($1, $2)`: before it gives the first row of that, the server copies each list to a store of its own, and
 * making those stores is a tenth of what it does for a commit. In a select list they are walked side by side.
 */
export function lists(columns: string): string {
  const walks = columns.split(", ").map((column, index) => {
    const [name, type] = column.split(" ");
    return `unnest($${index + 1}::${type}[]) AS ${name}`;
  });
  return `SELECT ${walks.join(", ")}`;
}
