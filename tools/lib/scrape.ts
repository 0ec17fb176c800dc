/** A series of a worker's metrics. */
export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Reads all series of the process that serves metrics at `HOST:PORT`. */
export async function scrape(address: string): Promise<Series[]> {
  const text = await (await fetch(`http://${address}/metrics`)).text();
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, ...pair]) => pair);
      return { name, labels: Object.fromEntries(pairs) as Series['labels'], value: Number(value) };
    });
}
