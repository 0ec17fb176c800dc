/**
 * Simulates how often a turn is polled and how late its end is seen, by the schedule of this project and by those of
 * others: `npm run bench:cadence`. It takes seconds, needs no server, and gives the same figures on each run: it prints
 * the tables and writes them into docs/performance.md.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { simulate } from './cadence/simulate';
import { cadenceTables, PAGE_PATH, withTables } from './cadence/tables';

const tables = cadenceTables(simulate());
console.log(tables);
writeFileSync(PAGE_PATH, withTables(readFileSync(PAGE_PATH, 'utf8'), tables));
