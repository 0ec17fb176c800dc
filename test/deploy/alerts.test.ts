import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { type MetricLabel, METRICS } from '../../src/contract/metrics';
import { ALERTS, SELECTORS } from './alert-rules';

const runbook = readFileSync(path.join(__dirname, '../../docs/runbook.md'), 'utf8');

it('the runbook has a section for each alert with its meaning, its impact on messages, the checks and the fix', () => {
  const [, ...sections] = runbook.split(/^## /m);
  expect(sections.map((section) => section.split('\n', 1)[0])).toEqual(ALERTS.map(({ alert }) => alert));
  for (const [index, { alert, annotations }] of ALERTS.entries()) {
    expect(annotations.runbook_url).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
    for (const part of ['Meaning', 'Impact on messages', 'Check', 'Fix'])
      expect(sections[index]).toContain(`\n**${part}**: `);
  }
});

it('alerts and panels use only exported metrics and possible values of their labels', () => {
  const ownSelectors = SELECTORS.filter(({ metric }) => metric.startsWith('agent_'));
  expect(ownSelectors.length).toBeGreaterThan(ALERTS.length);
  for (const { metric, labels } of ownSelectors) {
    const name = metric.replace(/_bucket$/, '');
    const row = Object.values(METRICS).find((each) => each.name === name);
    expect({ metric, found: row?.kind === 'histogram' }).toEqual({ metric, found: metric !== name });
    const listed: Readonly<Record<string, MetricLabel>> = row?.labels ?? {};
    const missing = labels.filter(([label, pattern]) => {
      const values = listed[label] ?? null;
      return values === null || 'maxWords' in values || !values.some((value) => pattern.test(value));
    });
    expect({ metric, missing }).toEqual({ metric, missing: [] });
  }
});
