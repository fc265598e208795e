-- works with: 0009_skew.sql
--
-- An intent that a policy has wait for a second API key's word: by which rule, until when, and since when it is approved.
-- It has no nonce, and owns its request id all the same. Null: no policy asked for that.
ALTER TABLE fencepost.intake
  ADD COLUMN awaits text COLLATE "C",
  ADD COLUMN expires_at timestamptz,
  ADD COLUMN approved_at timestamptz,
  ADD CONSTRAINT intake_awaits CHECK ((awaits IS NULL) = (expires_at IS NULL) AND (approved_at IS NULL OR awaits IS NOT NULL));

CREATE UNIQUE INDEX intake_awaited_request ON fencepost.intake (request_id, signer, chain_id)
  WHERE awaits IS NOT NULL AND alias_of IS NULL AND request_id IS NOT NULL;

-- The mirror of domain/transitions.ts. Rows that are there were checked by narrower rules.
ALTER TABLE fencepost.transaction
  DROP CONSTRAINT transaction_status,
  ADD CONSTRAINT transaction_status CHECK (
    state || '/' || coalesce(sub_state, '-') IN (
      'CREATED/-',
      'CREATED/AWAITING_APPROVAL',
      'ALLOCATED/-',
      'TRACKING/PENDING',
      'TRACKING/BROADCAST',
      'TRACKING/STALE',
      'TRACKING/MINED',
      'TRACKING/UNKNOWN_SUBMIT_RESULT',
      'CONFIRMED/-',
      'CONFIRMED/REPLACED',
      'FAILED_FINAL/REVERTED',
      'FAILED_FINAL/CANCELLED',
      'FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY',
      'FAILED_FINAL/REJECTED',
      'FAILED_FINAL/REQUEST_ID_REUSED',
      'FAILED_FINAL/EXPIRED',
      'STUCK/-'
    )
  ) NOT VALID,
  -- Cancelled or expired: before it had a nonce, or after.
  DROP CONSTRAINT transaction_nonce_bound,
  ADD CONSTRAINT transaction_nonce_bound CHECK (
    coalesce(sub_state, '-') IN ('CANCELLED', 'EXPIRED')
    OR (nonce IS NULL) = (state = 'CREATED' OR coalesce(sub_state, '-') IN ('REJECTED', 'REQUEST_ID_REUSED'))
  ) NOT VALID;

ALTER TABLE fencepost.step
  DROP CONSTRAINT history_transition,
  ADD CONSTRAINT history_transition CHECK (
    event || ' ' || coalesce(from_state, '-') || ' ' || state || '/' || coalesce(sub_state, '-') IN (
      'accept - CREATED/-',
      'allocate - ALLOCATED/-',
      'allocate CREATED ALLOCATED/-',
      'refuse - FAILED_FINAL/REJECTED',
      'refuse CREATED FAILED_FINAL/REJECTED',
      'refuseReusedRequestId - FAILED_FINAL/REQUEST_ID_REUSED',
      'refuseReusedRequestId CREATED FAILED_FINAL/REQUEST_ID_REUSED',
      'await CREATED CREATED/AWAITING_APPROVAL',
      'approve CREATED CREATED/-',
      'reject CREATED FAILED_FINAL/REJECTED',
      'expire CREATED FAILED_FINAL/EXPIRED',
      'callOff CREATED FAILED_FINAL/CANCELLED',
      'sign ALLOCATED TRACKING/PENDING',
      'broadcast TRACKING TRACKING/BROADCAST',
      'resubmit TRACKING TRACKING/PENDING',
      'resubmit TRACKING TRACKING/BROADCAST',
      'resubmit TRACKING TRACKING/STALE',
      'resubmit TRACKING TRACKING/MINED',
      'resubmit TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'resubmit STUCK STUCK/-',
      'submitFailed TRACKING TRACKING/PENDING',
      'submitFailed TRACKING TRACKING/BROADCAST',
      'submitFailed TRACKING TRACKING/STALE',
      'submitFailed TRACKING TRACKING/MINED',
      'submitFailed TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'submitFailed STUCK STUCK/-',
      'stale TRACKING TRACKING/STALE',
      'reprice TRACKING TRACKING/PENDING',
      'reprice STUCK TRACKING/PENDING',
      'cancel TRACKING TRACKING/PENDING',
      'cancel STUCK TRACKING/PENDING',
      'replace TRACKING TRACKING/PENDING',
      'replace STUCK TRACKING/PENDING',
      'placeholder TRACKING TRACKING/PENDING',
      'placeholder STUCK TRACKING/PENDING',
      'amend ALLOCATED ALLOCATED/-',
      'decide ALLOCATED ALLOCATED/-',
      'decide TRACKING TRACKING/PENDING',
      'decide TRACKING TRACKING/BROADCAST',
      'decide TRACKING TRACKING/STALE',
      'decide TRACKING TRACKING/MINED',
      'decide TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'decide STUCK STUCK/-',
      'stick TRACKING STUCK/-',
      'unstick STUCK TRACKING/PENDING',
      'shiftDown ALLOCATED ALLOCATED/-',
      'giveUp ALLOCATED FAILED_FINAL/REJECTED',
      'loseSight TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'adopt TRACKING TRACKING/BROADCAST',
      'sendAnew TRACKING TRACKING/PENDING',
      'mine TRACKING TRACKING/MINED',
      'mine STUCK TRACKING/MINED',
      'withdraw TRACKING TRACKING/PENDING',
      'confirm TRACKING CONFIRMED/-',
      'revert TRACKING FAILED_FINAL/REVERTED',
      'confirmReplacement TRACKING CONFIRMED/REPLACED',
      'confirmCancel TRACKING FAILED_FINAL/CANCELLED',
      'loseNonce TRACKING FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY',
      'requeue TRACKING ALLOCATED/-',
      'reorg CONFIRMED TRACKING/PENDING',
      'reorg FAILED_FINAL TRACKING/PENDING'
    )
  ) NOT VALID;
