import { laneMovesContract } from "../../../contracts/lane-moves.contract.ts";
import { createPostgresSubject } from "../postgres-subject.ts";

laneMovesContract("PostgreSQL", createPostgresSubject);
