import type { BatchOfTest } from '../../harness/batch-of-test';

/** What a line of `--json` holds: of an item, or of the whole at the end. */
export interface JsonLine {
  readonly workflowId?: string;
  readonly jobId?: string;
  readonly settledAt?: string;
}

export function jsonLines(text: string): JsonLine[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as JsonLine);
}

/** A batch as JSON Lines. */
export function jsonl({ requests }: BatchOfTest): string {
  const lines = requests.map(({ projectId, jobId, prompt }) => ({ project: projectId, job: jobId, prompt }));
  return lines.map((line) => JSON.stringify(line) + '\n').join('');
}

/** As a spreadsheet writes it: a byte order mark, CRLF, quotes. */
export function csv({ requests }: BatchOfTest): string {
  const rows = requests.map(({ projectId, jobId, prompt }) => [projectId, jobId, JSON.stringify(prompt)]);
  const text = [['project', 'job', 'prompt'], ...rows].map((row) => row.join(',') + '\r\n').join('');
  return '\ufeff' + text.replaceAll('\\"', '""').replaceAll('\\n', '\n');
}
