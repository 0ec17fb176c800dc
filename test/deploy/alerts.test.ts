import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ALERTS_FILE, prometheusRule, RULE_FILE } from '../../scripts/prometheus-rule';
import { METRICS } from '../../src/core/metrics';
import dashboard from '../../deploy/grafana/follow-ups.json';
import { alertsIn, metricsIn, panelExpressions } from '../harness/alert-rules';

const alerts = alertsIn(readFileSync(ALERTS_FILE, 'utf8'));
const runbook = readFileSync(path.join(__dirname, '../../docs/runbook.md'), 'utf8');
const exported = Object.values(METRICS).flatMap(({ name, kind }) =>
  kind === 'histogram' ? ['bucket', 'sum', 'count'].map((part) => `${name}_${part}`) : [name],
);

it('the PrometheusRule has the alerts of the rule file', () => {
  // Run `npm run docs` after a change of the alerts.
  expect(readFileSync(RULE_FILE, 'utf8')).toBe(prometheusRule());
});

describe.each(alerts)('the alert $name', ({ name, text, expression }) => {
  it('names its section of the runbook, which says what it means, what to look at and what clears it', () => {
    expect(text).toContain(`runbook_url: docs/runbook.md#${name.toLowerCase()}\n`);
    const section = runbook.split(/^## /m).find((each) => each.startsWith(`${name}\n`)) ?? '';
    for (const part of ['Means', 'Look', 'Clear']) expect(section).toContain(`\n**${part}**: `);
    expect(section).toMatch(/^```\n.+\n```$/ms);
  });

  it('is about metrics that are exported', () => {
    expect(metricsIn(expression).length).toBeGreaterThan(0);
    expectExported(expression);
  });
});

it('the runbook has no section of an alert that is gone', () => {
  const headings = [...runbook.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
  expect(headings).toEqual(alerts.map(({ name }) => name));
});

it.each(panelExpressions(dashboard))(
  'the panel $title is about metrics that are exported',
  ({ expression }) => expectExported(expression),
);

/** The SDK's own metrics are looked for in a running worker: alerts.long.test.ts. */
function expectExported(expression: string): void {
  const own = metricsIn(expression).filter((name) => name.startsWith('agent_follow_up_'));
  expect(exported).toEqual(expect.arrayContaining(own));
}
