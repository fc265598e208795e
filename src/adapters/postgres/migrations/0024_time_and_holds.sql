-- works with: 0009_skew.sql
--
-- Until when its caller wants a transaction mined, since when it is being cancelled because that was over, and since when an
-- operator holds it back. Null: nobody said so. A release that does not know these columns neither cancels nor holds.
ALTER TABLE fencepost.transaction
  ADD COLUMN valid_until timestamptz,
  ADD COLUMN expired_at timestamptz,
  ADD COLUMN held_since timestamptz,
  ADD CONSTRAINT transaction_expired CHECK (expired_at IS NULL OR expired_at >= valid_until) NOT VALID;

-- The same of what has no nonce yet, and how often it was held back or let go, which are steps of its history.
ALTER TABLE fencepost.intake
  ADD COLUMN valid_until timestamptz,
  ADD COLUMN held_since timestamptz,
  ADD COLUMN holds integer NOT NULL DEFAULT 0;

-- What a lane's owner asks for when a time may be over. Most transactions have none, and are not in it.
CREATE INDEX transaction_expiring ON fencepost.transaction (chain_id, signer, valid_until)
  WHERE live AND valid_until IS NOT NULL;

-- The mirror of domain/transitions.ts. Rows that are there were checked by narrower rules.
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
      'expire ALLOCATED FAILED_FINAL/EXPIRED',
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
      'hold CREATED CREATED/-',
      'hold CREATED CREATED/AWAITING_APPROVAL',
      'hold ALLOCATED ALLOCATED/-',
      'hold TRACKING TRACKING/PENDING',
      'hold TRACKING TRACKING/BROADCAST',
      'hold TRACKING TRACKING/STALE',
      'hold TRACKING TRACKING/MINED',
      'hold TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'hold STUCK STUCK/-',
      'unhold CREATED CREATED/-',
      'unhold CREATED CREATED/AWAITING_APPROVAL',
      'unhold ALLOCATED ALLOCATED/-',
      'unhold TRACKING TRACKING/PENDING',
      'unhold TRACKING TRACKING/BROADCAST',
      'unhold TRACKING TRACKING/STALE',
      'unhold TRACKING TRACKING/MINED',
      'unhold TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'unhold STUCK STUCK/-',
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
      'confirmExpiry TRACKING FAILED_FINAL/EXPIRED',
      'loseNonce TRACKING FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY',
      'requeue TRACKING ALLOCATED/-',
      'reorg CONFIRMED TRACKING/PENDING',
      'reorg FAILED_FINAL TRACKING/PENDING'
    )
  ) NOT VALID;
