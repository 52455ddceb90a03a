package discord

// TokenRefused is the text for an operator who has just typed a token that the platform
// refuses.
const TokenRefused = "Discord refuses this token: it is mistyped or was reset. In the developer portal open Bot, press Reset Token and copy the new one."
