/** The entry `agent-follow-up-client/testing`: a client for the tests of services that start follow-ups. */
export { type Availability, InMemoryFollowUpClient, type SimulatedOutcome } from '../client/testing';
