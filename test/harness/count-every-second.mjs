// For `node --import`: a worker that asks the server every second, and not every minute, what is open, and gives up as soon.
import openWorkflows from '../../dist/worker/open-workflows.js';

openWorkflows.COUNT_INTERVAL_MS = 1_000;
openWorkflows.COUNT_TIMEOUT_MS = 1_000;
