package telegram

// TokenRefused is the text for an operator who has just typed a token that the platform
// refuses.
const TokenRefused = "Telegram refuses this token: it is mistyped or was revoked. Copy it again from @BotFather (/mybots, API Token)."
