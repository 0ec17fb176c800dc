/** The entry `agent-follow-up-client/testing`: a client for the tests of services that start follow-ups. */
export type { Availability } from '../client/in-memory-server';
export type { SimulatedOutcome } from '../client/simulated-outcome';
export { InMemoryFollowUpClient } from '../client/testing';
