/**
 * Writes the files and tables that are generated from the code: `npm run docs`. With `--check`, the script writes nothing, and fails if a
 * file is not up to date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { format, resolveConfig } from 'prettier';
import { SCHEDULES, simulate, TURNS_MS } from '../lib/polling-schedules';
import { type MetricLabel, METRICS } from '../../src/contract/metrics';
import { formatDuration } from '../../src/contract/duration';
import { errorRows } from './error-docs';
import { proofsPage } from '../lib/proofs';
import { requestRows, requestSchema } from './request-docs';
import { FAULTS } from '../../sandbox/faults';

const ROOT = path.join(__dirname, '../..');

/** The comments before and after the generated tables of a page. */
const BEGIN = '<!-- table: made by npm run docs -->';
const END = '<!-- end of table -->';

/** The generated files, and the pages with generated tables. Each function returns the new text of a file. */
const GENERATED_FILES: Readonly<Record<string, (text: string) => string>> = {
  'docs/request.schema.json': () => JSON.stringify(requestSchema()),
  'docs/request.md': (page) => withTables(page, [requestRows()]),
  'docs/metrics.md': (page) => withTables(page, [metricRows(), labelRows()]),
  'docs/client.md': (page) => withTables(page, [requestRows()], [errorRows()]),
  'docs/performance.md': (page) => withTables(page, [cadenceRows()]),
  'docs/sandbox.md': (page) => withTables(page, [faultRows()]),
  'docs/proofs.md': proofsPage,
  'deploy/prometheus/prometheus-rule.yaml': prometheusRule,
};

type Rows = readonly (readonly string[])[];

/**
 * Returns a page with new Markdown tables. The first row of a table is its heading. Columns of numbers are aligned to the right. The page
 * has a pair of comments for each group of tables, in the same order.
 */
function withTables(page: string, ...groups: readonly (readonly Rows[])[]): string {
  const [head = '', ...rest] = page.split(BEGIN);
  const parts = rest.map((part, index) => {
    const markdown = (groups[index] ?? []).map(markdownTable);
    return `${BEGIN}\n\n${markdown.join('\n\n')}\n\n${part.slice(part.indexOf(END))}`;
  });
  return [head, ...parts].join('');
}

function markdownTable([head = [], ...rows]: Rows): string {
  const rule = head.map((_, column) => (/^\d/.test(rows[0]?.[column] ?? '') && column > 0 ? '--:' : '---'));
  return [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function markdownCodes(texts: readonly string[]): string {
  return texts.map((text) => `\`${text}\``).join(', ');
}

/** Returns the metrics with the names of their labels. */
function metricRows(): Rows {
  const rows = Object.values(METRICS).map(({ name, kind, labels, meaning }) => {
    return [`\`${name}\``, kind, markdownCodes(Object.keys(labels)) || 'none', meaning];
  });
  return [['metric', 'kind', 'labels', 'meaning'], ...rows];
}

/** Returns the values of each label. Metrics whose label has the same values share a row. */
function labelRows(): Rows {
  const metricsOf = new Map<string, string[]>();
  for (const { name, labels } of Object.values(METRICS)) {
    for (const [label, values] of Object.entries<MetricLabel>(labels)) {
      if (values === null) continue;
      const listed =
        'maxWords' in values ? `at most ${values.maxWords} words, and \`other\`` : markdownCodes(values);
      const row = `\`${label}\`|${listed}`;
      metricsOf.set(row, [...(metricsOf.get(row) ?? []), name]);
    }
  }
  const rows = [...metricsOf].map(([row, metrics]) => {
    const [label = '', values = ''] = row.split('|');
    return [label, markdownCodes(metrics), values];
  });
  return [['label', 'metrics', 'values'], ...rows];
}

/** Returns the faults of the sandbox with their operations and the names of their parameters. */
function faultRows(): Rows {
  const rows = Object.entries(FAULTS).map(([name, { help, operations, parameters }]) => {
    const parameterNames = markdownCodes(Object.keys(parameters.shape)) || 'none';
    return [`\`${name}\``, markdownCodes(operations), parameterNames, help];
  });
  return [['fault', 'operations', 'parameters', 'effect'], ...rows];
}

/** Returns for each schedule the number of polls of one turn, and the lateness of the read that returns its end. */
function cadenceRows(): Rows {
  const rows = TURNS_MS.map((turnMs) => {
    const cells = Object.values(SCHEDULES).map((schedule) => {
      const { meanPolls, p95LatenessMs: ms } = simulate(schedule, turnMs);
      const lateness = ms < 10_000 ? `${(ms / 1_000).toFixed(1)}s` : formatDuration(ms);
      return `${Math.round(meanPolls).toLocaleString('en-US')}; ${lateness}`;
    });
    return [formatDuration(turnMs), ...cells];
  });
  return [['turn', ...Object.keys(SCHEDULES)], ...rows];
}

/** Returns the `PrometheusRule` for the Prometheus Operator, which has the groups of the alerts. */
function prometheusRule(): string {
  const alerts = readFileSync(path.join(ROOT, 'deploy/prometheus/alerts.yaml'), 'utf8');
  return `# \`npm run docs\` generates this file from alerts.yaml. Add the labels that spec.ruleSelector of your Prometheus requires.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: agent-follow-up-worker
  labels: { app.kubernetes.io/name: agent-follow-up-worker }
spec:
${alerts.slice(alerts.indexOf('groups:')).replace(/^(?=.)/gm, '  ')}`;
}

async function main(): Promise<void> {
  const isCheck = process.argv.includes('--check');
  for (const [name, make] of Object.entries(GENERATED_FILES)) {
    const filepath = path.join(ROOT, name);
    const before = readFileSync(filepath, 'utf8');
    const generated = await format(make(before), { ...(await resolveConfig(filepath)), filepath });
    if (generated === before) continue;
    if (!isCheck) writeFileSync(filepath, generated);
    process.exitCode = isCheck ? 1 : 0;
    console.log(isCheck ? `${name} is not up to date; run "npm run docs"` : `${name} was written`);
  }
}

void main();
