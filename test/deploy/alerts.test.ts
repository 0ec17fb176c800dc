import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { prometheusRule, RULE_FILE } from '../../scripts/prometheus-rule';
import { METRICS } from '../../src/core/metrics';
import { ALERTS, metricsIn, PANELS } from './alert-rules';

const runbook = readFileSync(path.join(__dirname, '../../docs/runbook.md'), 'utf8');

it('the PrometheusRule has the alerts of the rule file', () => {
  // Run `npm run docs` after a change of the alerts.
  expect(readFileSync(RULE_FILE, 'utf8')).toBe(prometheusRule());
});

it('each alert has its section of the runbook, which says what it means, what to look at and what clears it', () => {
  const [, ...sections] = runbook.split(/^## /m);
  expect(sections.map((section) => section.split('\n', 1)[0])).toEqual(ALERTS.map(({ alert }) => alert));
  for (const [index, { alert, annotations }] of ALERTS.entries()) {
    expect(annotations.runbook_url).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
    for (const part of ['Means', 'Look', 'Clear']) expect(sections[index]).toContain(`\n**${part}**: `);
    expect(sections[index]).toMatch(/^```\n.+\n```$/ms);
  }
});

it('alerts and panels are about metrics that are exported', () => {
  const exported = Object.values(METRICS).flatMap(({ name, kind }) =>
    kind === 'histogram' ? ['bucket', 'sum', 'count'].map((part) => `${name}_${part}`) : [name],
  );
  for (const { expr } of ALERTS) expect(metricsIn(expr)).not.toEqual([]);
  // The SDK's own metrics are looked for in a running worker: alerts.long.test.ts.
  const named = [...ALERTS, ...PANELS].flatMap(({ expr }) => metricsIn(expr));
  expect(exported).toEqual(expect.arrayContaining(named.filter((name) => name.startsWith('agent_'))));
});
