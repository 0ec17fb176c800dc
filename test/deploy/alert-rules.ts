import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import dashboard from '../../deploy/grafana/follow-ups.json';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook_url: string };
}

export const ALERTS_FILE = path.join(__dirname, '../../deploy/prometheus/alerts.yaml');
const rules = parse(readFileSync(ALERTS_FILE, 'utf8')) as { groups: { rules: Alert[] }[] };
export const ALERTS = rules.groups.flatMap(({ rules }) => rules);

const panels = dashboard.panels.flatMap(({ targets }) => targets);

/** The series that alerts and panels ask for: the metric, and what a label must match; of all namespaces. */
export const SELECTORS = [...ALERTS, ...panels].flatMap(({ expr }) =>
  [...expr.matchAll(/\b((?:agent_follow_up|temporal)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, metric = '', inner = '']) => ({
      metric,
      labels: [...inner.matchAll(/(\w+)[=!]~?"([^"$]*)"/g)].map(
        ([, label = '', text = '']) => [label, new RegExp(`^(?:${text})$`)] as const,
      ),
    }),
  ),
);
