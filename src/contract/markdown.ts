/** A text from outside as Markdown code: no character of it may end a table's cell or become markup. */
export function markdownCode(text: string): string {
  return '`' + text.replace(/[`|\s]+/g, ' ') + '`';
}

/** A table of names and values. The colon keeps them apart in Temporal's Web UI, which gives cells no padding. */
export function markdownTable(rows: readonly (readonly [name: string, value: string])[]): string {
  return ['| | |', '|---|---|', ...rows.map(([name, value]) => `| ${name}: | ${value} |`)].join('\n');
}
