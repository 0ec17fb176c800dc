export interface Alert {
  readonly name: string;
  /** Its rule as it stands in the file. */
  readonly text: string;
  readonly expression: string;
}

/** The alerts of a rule file, in their order. */
export function alertsIn(rules: string): Alert[] {
  const [, ...parts] = rules.split(/^ +- alert: /m);
  return parts.map((text) => {
    const [, name = ''] = /^(\w+)\n/.exec(text) ?? [];
    const [, expression = ''] = /^ +expr: (?:\|\n)?([\s\S]*?)(?=^ +(?:for|labels):)/m.exec(text) ?? [];
    return { name, text, expression };
  });
}

/** The metrics of this project and of the SDK that an expression names. */
export function metricsIn(expression: string): string[] {
  return expression.match(/\b(?:agent_follow_up|temporal)_\w+/g) ?? [];
}

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
}

export function panelExpressions({ panels }: Dashboard): { title: string; expression: string }[] {
  return panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expression: expr })));
}

/** A window holds some scrapes, of which there is one a second. */
const LONGEST_S = 15;

/** The rules with shorter times, for tests: a minute is a second, and nothing lasts longer than 15. What is compared stays as it is. */
export function hurried(rules: string): string {
  const short = (count: string, unit: string): string =>
    `${Math.min(LONGEST_S, Number(count) * (unit === 'h' ? 60 : 1))}s`;
  return rules
    .replaceAll(
      /(\[|offset )(\d+)([mh])\b/g,
      (_, key: string, count: string, unit: string) => key + short(count, unit),
    )
    .replaceAll(/ \* 60\b/g, '')
    .replaceAll(
      /( for: )(\d+)([mh])$/gm,
      (_, key: string, count: string, unit: string) => key + short(count, unit),
    );
}
