/**
 * Simulates how often a turn is polled and how late its end is seen, by the schedule of this project and by those of
 * others: `npm run bench:cadence`. It takes seconds, needs no server, and gives the same figures on each run: it prints
 * the tables, writes them into docs/performance.md, and draws
 * docs/performance-cadence.svg and docs/performance-gears.svg.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { gearsPlot } from './cadence/gears-plot';
import { GEARS_PLOT_PATH, PAGE_PATH, PLOT_PATH, withTables } from './cadence/page';
import { cadencePlot } from './cadence/plot';
import { simulate } from './cadence/simulate';
import { cadenceTables } from './cadence/tables';

const simulation = simulate();
const tables = cadenceTables(simulation);
console.log(tables);
writeFileSync(PAGE_PATH, withTables(readFileSync(PAGE_PATH, 'utf8'), tables));
writeFileSync(PLOT_PATH, cadencePlot(simulation));
writeFileSync(GEARS_PLOT_PATH, gearsPlot());
