/** Writes the table of docs/metrics.md, which is made of the table of metrics in src/core/metrics.ts. Run it with `npm run docs`. */
import path from 'node:path';
import { METRICS } from '../src/core/metrics';
import { writeTable } from './request-docs';

export const METRICS_FILE = path.join(__dirname, '../docs/metrics.md');

type Row = (typeof METRICS)[keyof typeof METRICS];

/** The table of the metrics in Markdown. */
export function metricsTable(): string {
  const rows = Object.values(METRICS).map((row) => [`\`${row.name}\``, row.kind, labelsOf(row), row.meaning]);
  const head = ['metric', 'kind', 'labels', 'meaning'];
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Each label with its values. */
function labelsOf({ labels }: Row): string {
  const all = Object.entries<readonly string[] | null>(labels).map(([label, values]) => {
    const listed = values?.map((value) => `\`${value}\``).join(' ');
    return `\`${label}\`: ${listed ?? 'any'}`;
  });
  return all.length === 0 ? 'none' : all.join('; ');
}

if (require.main === module) writeTable(METRICS_FILE, metricsTable());
