/** A text from outside as Markdown code: no character of it may end a table's cell or become markup. */
export function markdownCode(text: string): string {
  return '`' + text.replace(/[`|\s]+/g, ' ') + '`';
}

/** A table of two columns without a heading, as Temporal's Web UI shows it. */
export function markdownTable(rows: readonly (readonly [name: string, value: string])[]): string {
  return ['| | |', '|---|---|', ...rows.map(([name, value]) => `| ${name} | ${value} |`)].join('\n');
}
